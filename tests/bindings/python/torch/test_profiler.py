"""CUDA's source steps aside for PyTorch's profilers: with PyTorch's real profilers, on the CPU, and a source that notes what
it is asked. What Kineto does with CUPTI needs a GPU, and is not tried here."""

import gc
import logging
import threading

import pytest
import ringmain.torch
import torch
from ringmain.torch import _profiler
from torch.autograd.profiler import profile as autograd_profile
from torch.profiler import profile, schedule

ORIGINAL = {name: vars(autograd_profile)[name] for name in ("_prepare_trace", "__exit__")}


class StandIn:
    """A source that notes what it is asked, and whether a profiler was on at that moment."""

    def __init__(self):
        self.asked, self.now, self.taken, self.holds = [], "attached", 0, False

    def state(self):
        return self.now

    def lend(self, to):
        assert not torch.autograd._profiler_enabled()
        self.asked.append(f"lend to {to}")
        if self.holds:
            raise RuntimeError("it was attached with hold")
        was, self.now = self.now, "lent"
        return was == "attached"

    def take_back(self):
        assert not torch.autograd._profiler_enabled()
        self.asked.append("take back")
        if self.now != "lent" or self.taken > 0:
            self.taken -= 1
            return False
        self.now = "attached"
        return True


LEND, BACK = "lend to torch.profiler", "take back"


@pytest.fixture
def source():
    return StandIn()


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def loan(source, clock, monkeypatch):
    made = _profiler.Loan(lambda: source, lambda: clock[0])
    monkeypatch.setattr(_profiler.hook, "loan", made)
    return made


@pytest.fixture
def for_cuda(monkeypatch):
    """As if this PyTorch were one for CUDA whose Kineto takes the place."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "__version__", "2.13.0+cu130")


@pytest.fixture
def attached(bus, for_cuda, loan):
    with ringmain.torch.attach(bus, gpu_trace=False) as attachment:
        assert attachment.report()["torch.profiler"].live
        yield attachment
    assert {name: vars(autograd_profile)[name] for name in ORIGINAL} == ORIGINAL


def work():
    return torch.ones(4).sum().item()


@pytest.mark.parametrize("profiler", [lambda: profile(), lambda: autograd_profile(use_kineto=True), lambda: autograd_profile()],
                         ids=["torch.profiler", "autograd_with_kineto", "autograd"])
def test_the_source_lets_go_before_a_profiler_starts_and_comes_back_after_it(attached, source, profiler):
    for n in range(1, 3):
        with profiler() as running:
            assert source.asked == [LEND, BACK] * (n - 1) + [LEND] and source.now == "lent"
            work()
        assert source.asked == [LEND, BACK] * n and source.now == "attached"
        assert any("sum" in event.key for event in running.key_averages())  # it has profiled


def test_each_cycle_of_a_schedule_is_a_loan(attached, source):
    with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=2)) as running:
        for _ in range(6):
            work()
            running.step()
    assert source.asked == [LEND, BACK] * 2 and source.now == "attached"


def test_a_profiler_that_is_off_borrows_nothing(attached, source):
    with autograd_profile(enabled=False):
        work()
    assert source.asked == []


def test_while_kineto_keeps_the_place_it_is_asked_for_again_and_again_but_never_while_a_profiler_runs(attached, source, loan,
                                                                                                       clock):
    source.taken = 4
    with profile():
        clock[0] += 1000
        loan.chance()
    assert source.asked == [LEND, BACK]
    asked_at = []
    for _ in range(40):
        clock[0] += 0.5
        before = len(source.asked)
        loan.chance()
        if len(source.asked) > before:
            asked_at.append(clock[0] - 1000)
    assert asked_at == [1.0, 3.0, 7.0, 15.0] and source.now == "attached" and not loan.lent


def test_any_event_of_pytorchs_gpu_trace_is_a_chance(bus, for_cuda, source, loan, clock, monkeypatch):
    monkeypatch.setattr(ringmain.torch._gpu, "loan", loan)
    source.taken = 1
    with ringmain.torch.attach(bus, gpu_trace=True):
        with profile():
            work()
        assert source.now == "lent"
        clock[0] += 5
        torch.cuda._gpu_trace.EventRecordCallbacks.fire_callbacks(1, 2)
        assert source.now == "attached"


def test_what_somebody_else_borrowed_is_not_taken_back(attached, source):
    source.now = "lent"
    with profile():
        work()
    assert source.asked == [LEND] and source.now == "lent"


def test_a_source_that_ended_meanwhile_is_not_asked_again(attached, source, loan, clock):
    with profile():
        source.now = "detached"
    assert source.asked == [LEND, BACK] and not loan.lent
    clock[0] += 100
    loan.chance()
    assert source.asked == [LEND, BACK]


def test_a_source_that_holds_the_place_keeps_it_and_says_so_once(attached, source, caplog):
    source.holds = True
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with profile():
                work()
    assert source.asked == [LEND, LEND] and source.now == "attached"
    [said] = [record.getMessage() for record in caplog.records if record.name == "ringmain.torch"]
    assert said == ("torch.profiler will record nothing of the GPU, in this process: CUDA's source keeps CUPTI's place "
                    "(it was attached with hold)")


def test_a_profiler_that_cannot_be_prepared_gives_the_place_back(attached, source, monkeypatch):
    def refused(*_, **__):
        raise RuntimeError("no profiler today")

    monkeypatch.setattr(torch.autograd.profiler, "_prepare_profiler", refused)
    with pytest.raises(RuntimeError, match="no profiler today"):
        autograd_profile(use_kineto=True).__enter__()
    assert source.asked == [LEND, BACK]


def test_a_profiler_that_is_dropped_while_it_is_prepared_holds_up_nothing(attached, source, loan, clock):
    forgotten = profile()
    forgotten.prepare_trace()
    assert source.asked == [LEND]
    del forgotten
    gc.collect()
    clock[0] += 5
    loan.chance()
    assert source.asked == [LEND, BACK]


def test_without_a_source_profilers_run_as_ever(bus, for_cuda, monkeypatch):
    monkeypatch.setattr(_profiler.hook, "loan", _profiler.Loan(lambda: None))
    with ringmain.torch.attach(bus, gpu_trace=False), profile() as running:
        work()
    assert any("sum" in event.key for event in running.key_averages())


def test_threads_that_come_at_once_ask_once(source, clock):
    asking, go_on = threading.Event(), threading.Event()

    class Slow(StandIn):
        def take_back(self):
            asking.set()
            go_on.wait()
            return super().take_back()

    slow = Slow()
    loan = _profiler.Loan(lambda: slow, lambda: clock[0])
    loan.begin(token := StandIn())
    loan._running.discard(token)
    thread = threading.Thread(target=loan.chance)
    thread.start()
    asking.wait()
    loan.chance()  # returns at once
    go_on.set()
    thread.join()
    assert slow.asked == [LEND, BACK]


def test_what_others_put_around_the_profiler_survives(bus, for_cuda, loan, source):
    attachment = ringmain.torch.attach(bus, gpu_trace=False)
    ours, seen = autograd_profile._prepare_trace, []

    def theirs(self):
        seen.append("theirs")
        return ours(self)

    autograd_profile._prepare_trace = theirs
    try:
        attachment.detach()
        assert vars(autograd_profile)["_prepare_trace"] is theirs
        assert vars(autograd_profile)["__exit__"] is ORIGINAL["__exit__"]
        with profile():
            work()
        assert seen == ["theirs"] and source.asked == []
        with ringmain.torch.attach(bus, gpu_trace=False), profile():
            assert source.asked == [LEND]
        assert source.asked == [LEND, BACK] and seen == ["theirs"] * 2
        assert vars(autograd_profile)["_prepare_trace"] is theirs
    finally:
        autograd_profile._prepare_trace = ORIGINAL["_prepare_trace"]


def test_it_stands_as_long_as_somebody_wants_it(for_cuda, loan):
    first, second = object(), object()
    for by in (first, first, second):
        assert _profiler.hook.connect(by) == ""
    _profiler.hook.disconnect(first)
    assert autograd_profile._prepare_trace is not ORIGINAL["_prepare_trace"]
    _profiler.hook.disconnect(second)
    assert {name: vars(autograd_profile)[name] for name in ORIGINAL} == ORIGINAL


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch is built for CUDA")
def test_a_pytorch_without_cuda_is_left_alone(bus):
    with ringmain.torch.attach(bus) as attachment:
        said = attachment.report()["torch.profiler"]
        assert not said.live and said.why_not == "this PyTorch was not built for CUDA"
        assert {name: vars(autograd_profile)[name] for name in ORIGINAL} == ORIGINAL


@pytest.mark.parametrize("version, takes", [
    ("2.11.0+cu130", True), ("2.13.0+cu130", True), ("2.14.1+cu130", True), ("2.15.0a0+gitd0f2af8", True),
    ("2.15.0.dev20260810+cu132", True), ("2.15.0rc2", True), ("2.15.0+cu132", False), ("2.15.1", False), ("2.16.0a0", False),
    ("3.0.0", False), ("somebody's own", True)])
def test_which_pytorchs_take_the_place(version, takes, for_cuda, bus, monkeypatch):
    assert _profiler.takes_the_place(version) is takes
    monkeypatch.setattr(torch, "__version__", version)
    with ringmain.torch.attach(bus, gpu_trace=False) as attachment:
        said = attachment.report()["torch.profiler"]
        assert said.live is takes and ("not needed" in said.why_not) is not takes


def test_a_profiler_of_another_form_is_not_live(bus, for_cuda, monkeypatch):
    monkeypatch.delattr(autograd_profile, "_prepare_trace")
    with ringmain.torch.attach(bus, gpu_trace=False) as attachment:
        assert attachment.report()["torch.profiler"].why_not == (
            "torch.autograd.profiler.profile of this PyTorch has no _prepare_trace")
