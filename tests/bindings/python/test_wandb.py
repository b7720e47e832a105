"""Are figures of events beside the steps of a W&B run, and is a failing one nobody else's trouble? Against a run that keeps what it is
given; with the package there, against a real one that is offline."""

import logging
import subprocess
import sys
import threading
from typing import Annotated

import pytest
import ringmain
from ringmain.wandb import WandbSink


@ringmain.event("train.loss")
class Loss:
    step: int
    loss: float
    rate: float = 0.0
    tokens: int = 0


@ringmain.event("test.copied")
class Copied:
    op: str
    bytes: Annotated[int, ringmain.Unit.BYTES]
    took_ns: Annotated[int, ringmain.Unit.NS] = -1
    rank: int = 0


class Run:
    """What the sink needs of one."""

    def __init__(self, fails=False):
        self.rows, self.defined, self.fails, self.commits = [], {}, fails, []

    def define_metric(self, name, step_metric=None, hidden=False):
        self.defined[name] = step_metric

    def log(self, row, commit=True):
        if self.fails:
            raise ConnectionError("no network")
        self.rows.append(row)
        self.commits.append(commit)


def test_each_step_has_the_mean_of_each_figure_and_the_number_of_events(bus):
    run = Run()
    with WandbSink("train.*", run=run, bus=bus, commit=True) as sink:
        for step in range(3):
            bus.publish(Loss(step, step + 1.0, 0.5, 100))
            bus.publish(Loss(step, step + 2.0, 0.5, 100))
    assert run.rows == [{"train.loss/events": 2.0, "train.loss/loss": step + 1.5, "train.loss/rate": 0.5, "ringmain/step": step}
                        for step in range(3)]
    assert run.defined == {"ringmain/step": None, "train.loss/*": "ringmain/step"}
    assert (sink.stats().events, sink.stats().given, sink.stats().lost, sink.stats().failed) == (6, 3, 0, 0)


def test_figures_stand_beside_the_step_in_which_they_were_published_and_by_operation(bus):
    run = Run()
    with WandbSink(["train.step", "test.*"], run=run, bus=bus, commit=True):
        bus.publish(Copied("before", 1))
        for step in range(2):
            with bus.step(step, phase="forward"):
                bus.publish(Copied("up", 10 * (step + 1), 5))
                bus.publish(Copied("up", 30, 7))
                bus.publish(Copied("down", 1))
    none, first, second = run.rows
    assert none == {"test.copied/before/events": 1.0, "test.copied/before/bytes": 1.0, "ringmain/step": 1}
    assert first["test.copied/up/bytes"] == 20.0 and first["test.copied/up/took_ns"] == 6.0 and first["test.copied/up/events"] == 2.0
    assert "test.copied/down/took_ns" not in first, "a time that nobody knows"
    assert first["train.step/took_ns"] >= first["train.step/forward/took_ns"] > 0
    assert first["train.step/events"] == first["train.step/forward/events"] == 1.0, "begins are not counted"
    assert second["test.copied/up/bytes"] == 25.0 and second["ringmain/step"] == 1


def test_fields_are_chosen_by_name_and_wrong_ones_are_told(bus, caplog):
    run = Run()
    with WandbSink("train.loss", run=run, bus=bus, commit=True, fields={"train.loss": ["tokens"]}):
        bus.publish(Loss(4, 1.0, 0.5, 100))
    assert run.rows == [{"train.loss/events": 1.0, "train.loss/tokens": 100.0, "ringmain/step": 4}]
    with caplog.at_level(logging.WARNING, logger="ringmain"), WandbSink("train.loss", run=run, bus=bus, commit=True, fields={"train.loss": ["los"]}) as sink:
        bus.publish(Loss(4, 1.0))
    assert sink.stats().failed == 1 and "train.loss has no number 'los'; it has loss, rate, step, tokens" in caplog.text


def test_without_a_commit_all_steps_since_join_the_programs_row(bus):
    run = Run()
    with WandbSink("train.loss", run=run, bus=bus):
        for step in range(5):
            bus.publish(Loss(step, float(step)))
    assert run.rows == [{"train.loss/events": 5.0, "train.loss/loss": 2.0, "train.loss/rate": 0.0, "ringmain/step": 4}]
    assert run.commits == [False] and run.defined == {}


class Rows(Run):
    """Joins rows as W&B does: what is given again takes the place of what was there."""

    def __init__(self):
        super().__init__()
        self.open, self.committed, self.looks = {}, [], 0

    @property
    def step(self):
        found = len(self.committed)
        self.looks += 1
        return found

    def log(self, row, commit=True):
        super().log(row, commit)
        self.open |= row
        if commit:
            self.committed.append(self.open)
            self.open = {}


def test_no_event_is_left_out_however_seldom_the_program_logs(bus, eventually):
    run = Rows()
    with WandbSink("train.loss", run=run, bus=bus, every=0.001) as sink:
        for step in range(6):
            bus.publish(Loss(step, float(step)))
            if step:
                assert eventually(lambda: run.open.get("ringmain/step") == step - 1 and run.looks == 1 + 2 * step)  # noqa: B023
            if step == 4:
                run.log({"program": 1})
    run.log({"program": 2})
    assert [row["train.loss/events"] for row in run.committed] == [4.0, 2.0] and sink.stats().given == 6
    assert [row["train.loss/loss"] for row in run.committed] == [1.5, 4.5]
    assert [row["ringmain/step"] for row in run.committed] == [3, 5]


@pytest.mark.parametrize("before", [True, False])
def test_what_is_given_while_the_program_logs_is_in_one_row(bus, eventually, before):
    class Meanwhile(Rows):
        @property
        def summary(self):
            return {key: value for row in self.committed for key, value in row.items()}

        def log(self, row, commit=True):
            meanwhile = not commit and not self.committed
            if meanwhile and before:
                super().log({"program": 1})
            super().log(row, commit)
            if meanwhile and not before:
                super().log({"program": 1})

    run = Meanwhile()
    with WandbSink("train.loss", run=run, bus=bus, every=0.001):
        bus.publish(Loss(0, 1.0))
        bus.publish(Loss(1, 2.0))
        assert eventually(lambda: run.committed)
        bus.publish(Loss(2, 3.0))
    run.log({"program": 2})
    assert [row.get("train.loss/events", 0.0) for row in run.committed] == ([0.0, 3.0] if before else [1.0, 2.0])


@pytest.mark.parametrize("commit", [False, True])
def test_what_is_in_no_step_is_given_beside_steps_that_are_ready(bus, commit):
    run = Run()
    with WandbSink(["train.loss", "test.copied"], run=run, bus=bus, commit=commit):
        bus.publish(Copied("up", 7))
        bus.publish(Loss(1, 1.0))
        bus.publish(Loss(2, 3.0))
    joined = {key: value for row in run.rows for key, value in row.items()}
    assert joined["test.copied/up/bytes"] == 7.0 and joined["test.copied/up/events"] == 1.0
    assert len(run.rows) == (3 if commit else 1) and joined["train.loss/loss"] == (3.0 if commit else 2.0)


@ringmain.event("test.counted")
class Counted:
    step: int
    events: float


def test_a_field_may_have_the_name_of_the_number_of_events(bus):
    run = Run()
    with WandbSink("test.counted", run=run, bus=bus, commit=True):
        bus.publish(Counted(1, 10.0))
        bus.publish(Counted(1, 30.0))
    assert run.rows == [{"test.counted/events": 2.0, "test.counted/events/value": 20.0, "ringmain/step": 1}]


def test_what_is_no_figure_is_counted(bus):
    run = Run()
    with WandbSink("train.loss", run=run, bus=bus, commit=True) as sink:
        for loss in (1.0, float("nan"), float("inf"), 3.0):
            bus.publish(Loss(1, loss))
    assert run.rows == [{"train.loss/events": 4.0, "train.loss/loss": 2.0, "train.loss/rate": 0.0, "ringmain/step": 1}]
    assert sink.stats().left_out == 2 and sink.stats().failed == 0


def test_a_run_whose_rows_nobody_may_count_is_given_them_all_the_same(bus):
    class Shared(Run):
        @property
        def step(self):
            raise RuntimeError("not in a shared run")

    run = Shared()
    with WandbSink("train.loss", run=run, bus=bus) as sink:
        bus.publish(Loss(1, 1.0))
    assert run.rows[0]["train.loss/events"] == 1.0 and sink.stats().failed == 0


def test_a_run_whose_log_ends_the_thread_does_not(bus):
    class Ends(Run):
        def log(self, row, commit=True):
            super().log(row, commit)
            raise SystemExit(1)

    run = Ends()
    with WandbSink("train.loss", run=run, bus=bus, commit=True) as sink:
        for step in range(3):
            bus.publish(Loss(step, 1.0))
    assert len(run.rows) == 3 and sink.stats().failed == 3 and sink.stats().given == 0


@pytest.mark.parametrize("rows", [0, 1])
def test_a_run_to_which_nobody_logs_a_row_is_told_of(bus, caplog, eventually, rows):
    run = Run()
    run.step = 0
    with caplog.at_level(logging.WARNING, logger="ringmain"), WandbSink("train.loss", run=run, bus=bus, every=0.01):
        bus.publish(Loss(0, 1.0))
        bus.publish(Loss(1, 1.0))
        assert eventually(lambda: run.rows)
        run.step += rows
    assert ("nobody logged a row" in caplog.text) == (rows == 0)


def test_a_run_that_fails_is_counted_told_once_and_nobody_elses_trouble(bus, keep, caplog):
    bus.subscribe("train.loss", keep)
    with caplog.at_level(logging.WARNING, logger="ringmain"), WandbSink("train.loss", run=Run(fails=True), bus=bus, commit=True) as sink:
        assert all([bus.publish(Loss(step, 1.0)) for step in range(10)])
    stats = sink.stats()
    assert stats.failed == 10 and stats.given == 0 and stats.last_error == "ConnectionError: no network"
    assert len([record for record in caplog.records if "the sink wandb sink" in record.message]) == 1
    assert sum(map(len, keep.batches)) == 10


def test_a_run_that_hangs_holds_up_neither_publishers_nor_other_callbacks(bus, keep, long, eventually):
    inside, go = threading.Event(), threading.Event()

    class Hangs(Run):
        def log(self, row, commit=True):
            inside.set()
            go.wait(long)
            super().log(row)

    bus.subscribe("train.loss", keep)
    run = Hangs()
    sink = WandbSink("train.loss", run=run, bus=bus, commit=True, every=0.001, queue_events=64)
    bus.publish(Loss(0, 1.0))
    bus.publish(Loss(1, 1.0))
    assert inside.wait(long)
    for step in range(1000):
        assert bus.publish(Loss(step, 1.0))
    assert bus.flush(long) and sum(map(len, keep.batches)) == 1002
    assert not sink.close(0.01) and sink.stats().lost > 0
    go.set()
    assert sink.close(long) and sink.close(long)
    assert sink.stats().events + sink.stats().lost == 1002 and run.rows[-1]["ringmain/step"] > 0


def test_figures_come_without_a_close_too(bus, eventually):
    run = Run()
    with WandbSink("train.loss", run=run, bus=bus, commit=True, every=0.01):
        bus.publish(Loss(0, 1.0))
        bus.publish(Loss(1, 1.0))
        assert eventually(lambda: run.rows)
        assert run.rows[0]["ringmain/step"] == 0


def test_events_that_come_one_by_one_are_taken_together(bus, monkeypatch, eventually, long):
    monkeypatch.setattr("ringmain._sink.LINGER_S", 1e6)
    monkeypatch.setattr("ringmain._sink.EVENTS_PER_SECOND", 1e-3)
    with WandbSink("train.loss", run=Run(), bus=bus, commit=True) as sink:
        bus.publish(Loss(0, 1.0))
        assert eventually(lambda: sink.stats().events == 1), "the first is taken at once"
        for step in range(10):
            bus.publish(Loss(step, 1.0))
            assert bus.flush(long)
        threading.Event().wait(0.05)  # time enough for one that does not rest; one that does has eleven days
        assert sink.stats().events == 1
    assert sink.stats().events == 11, "and close() ends a rest"


def test_a_bus_that_ends_ends_the_sink(long):
    with ringmain.Bus("brief") as brief:
        sink = WandbSink("train.loss", run=Run(), bus=brief, commit=True)
    assert sink.close(long) and repr(sink).endswith("closed>")


PROGRAM = """
import os, ringmain
from ringmain.wandb import WandbSink

class Run:
    def define_metric(self, name, **more): pass
    def log(self, row): print(os.getpid() == parent, row["ringmain/step"], flush=True)

@ringmain.event("train.loss")
class Loss:
    step: int
    loss: float

parent = os.getpid()
bus = ringmain.Bus.process()
sink = WandbSink("train.loss", run=Run(), bus=bus, commit=True, every=3600)
for step in range(3):
    bus.publish(Loss(step, 1.0))
child = os.fork()
if child == 0:
    assert sink.close() and sink.close()
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_one_that_is_open_at_the_end_gives_what_it_has_and_a_forked_child_nothing():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 0\nTrue 1\nTrue 2\n", "")


def test_wrong_arguments_get_a_sentence(bus):
    for wrong, why in (({"what": 7}, "a sink hears a pattern"), ({"bus": 7}, "bus is 7"), ({"every": 0}, "every is 0"),
                       ({"commit": 1}, "commit is 1"), ({"queue_events": "x"}, "queue_events is 'x'"), ({"queue_events": 0}, "queue_events is 0"),
                       ({"every": None}, "every is None"), ({"fields": ["a"]}, "fields is"), ({"what": "a..b"}, "empty token"),
                       ({"fields": {"train.loss": "loss"}}, "fields is"), ({"fields": {"train.loss": 7}}, "fields is"),
                       ({"fields": {"train.loss": [7]}}, "fields is"), ({"fields": {7: ["loss"]}}, "fields is"),
                       ({"run": 7}, r"run is 7, which has no log\(\); give what wandb.init\(\) gave"),
                       ({"run": logging, "commit": True}, r"which has no define_metric\(\)")):
        with pytest.raises((TypeError, ValueError), match=why):
            WandbSink(**({"what": "train.>", "run": Run(), "bus": bus} | wrong))


def test_without_the_package_one_sentence_says_what_to_install(bus, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"WandbSink needs wandb, which is not installed: pip install ringmain\[wandb\]$"):
        WandbSink("train.>", bus=bus)


def test_a_folder_named_wandb_is_not_the_package(bus, tmp_path, monkeypatch):
    (tmp_path / "wandb").mkdir()
    monkeypatch.setitem(sys.modules, "wandb", None)  # so that it is put back
    del sys.modules["wandb"]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ImportError, match=r"WandbSink needs wandb, which is not installed: pip install ringmain\[wandb\]$"):
        WandbSink("train.>", bus=bus)


def test_a_real_run_that_the_program_logs_to_too(bus, tmp_path, monkeypatch, eventually):
    wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install ringmain[wandb]")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=tmp_path, project="test", reinit="create_new") as run:
        with WandbSink("train.loss", run=run, bus=bus, every=0.001) as sink:
            for step in range(4):
                bus.publish(Loss(step, float(step)))
                assert eventually(lambda: sink.stats().given >= step)  # noqa: B023
        run.log({"program": 1}, step=0)
        run.log({"program": 2}, step=1, commit=True)
        assert sink.stats().failed == 0
        assert run.summary["train.loss/events"] == 4.0 and run.summary["train.loss/loss"] == 1.5 and run.summary["program"] == 2


def test_a_real_run_that_is_offline(bus, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install ringmain[wandb]")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(RuntimeError, match=r"call wandb\.init\(\) before"):
        WandbSink("train.>", bus=bus)
    with wandb.init(mode="offline", dir=tmp_path, project="test") as run:
        with WandbSink("train.loss", bus=bus, commit=True) as sink:
            for step in range(20):
                bus.publish(Loss(step, float(step)))
        assert sink.stats().failed == 0 and sink.stats().given == 20
        assert run.summary["train.loss/loss"] == 19.0 and run.summary["ringmain/step"] == 19
    assert list(tmp_path.rglob("*.wandb"))
