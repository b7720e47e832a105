"""Does what all sinks share hold, whatever the backend, the program or its user does? Each is a test of a way to lose events."""

import logging
import subprocess
import sys
import threading

import pytest
import ringmain
from ringmain._sink import Sink


@ringmain.event("test.told")
class Told:
    n: int


@ringmain.event("test.other")
class Other:
    n: int


class Kept(Sink):
    def __init__(self, bus, what="test.told", take=lambda sink, batch: None, every=3600.0, queue_events=65536):
        self.numbers, self.flushed, self.take = [], [], take
        super().__init__(what, bus, title="kept", every=every, queue_events=queue_events)
        self._start()

    def _take(self, batch):
        self.numbers += [record.n for record in batch]
        self.take(self, batch)

    def _flush(self, last):
        self.flushed.append(last)


class Unspeakable(Exception):
    def __str__(self):
        raise SystemExit(3)


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), Unspeakable(), ValueError("no")])
def test_nothing_that_a_backend_raises_ends_a_sink(bus, error, eventually, long):
    def refuse(sink, batch):
        raise error

    with Kept(bus, take=refuse) as sink:
        bus.publish(Told(1))
        assert eventually(lambda: sink.stats().failed == 1)
        bus.publish(Told(2))
    assert sink.close(long) and sink.numbers == [1, 2] and sink.flushed == [True]
    assert sink.stats().failed == 2 and sink.stats().last_error.startswith(type(error).__name__)


def test_a_log_handler_that_raises_does_not_either(bus, long):
    class Raises(logging.Handler):
        def emit(self, record):
            raise RuntimeError("the disk is full")

    def refuse(sink, batch):
        raise ValueError("no")

    handler = Raises()
    logging.getLogger("ringmain").addHandler(handler)
    try:
        sink = Kept(bus, take=refuse)
        bus.publish(Told(1))
        assert sink.close(long) and sink.numbers == [1] and sink.flushed == [True] and sink.stats().last_error == "ValueError: no"
    finally:
        logging.getLogger("ringmain").removeHandler(handler)


INTERRUPTED = """
import signal, threading
import ringmain
from ringmain._sink import Sink

@ringmain.event("test.told")
class Told:
    n: int

asked, go = threading.Event(), threading.Event()

class Kept(Sink):
    def _take(self, batch):
        if not asked.is_set():
            asked.set()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # in close(), or just before it waits
            go.wait()
        print("given", [record.n for record in batch], flush=True)

bus = ringmain.Bus.process()
sink = Kept("test.told", bus, title="kept", every=3600.0, queue_events=64)
sink._start()
try:
    bus.publish(Told(1))
    sink.close(None)
    asked.wait()
    threading.Event().wait()
except KeyboardInterrupt:
    go.set()
bus.publish(Told(2))
print("interrupted", flush=True)
"""


def test_ctrl_c_in_a_close_loses_nothing_at_the_exit():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "interrupted" in done.stdout and "given [1" in done.stdout


def test_an_interrupted_close_can_be_called_again(bus, long, monkeypatch):
    sink = Kept(bus)
    bus.publish(Told(1))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(bus, "flush", interrupt)
        sink.close()
    bus.publish(Told(2))
    assert sink.close(long) and sink.numbers == [1, 2]


def interrupt(*_):
    raise KeyboardInterrupt


def test_a_bus_that_ends_first_takes_nothing_with_it(long):
    inside, go = threading.Event(), threading.Event()

    def hang(sink, batch):
        inside.set()
        go.wait(long)

    with ringmain.Bus("brief") as brief:
        sink = Kept(brief, what=["test.told", "test.none"], take=hang, queue_events=8)
        brief.publish(Told(0))
        assert inside.wait(long)
        for n in range(1, 101):
            brief.publish(Told(n))
        assert brief.flush(long)
        lost = sink.stats().lost
        assert lost > 0
    assert sink.stats().lost == lost, "what was lost stays lost"
    go.set()
    assert sink.close(long) and sink.flushed == [True]
    assert sink.stats().events == len(sink.numbers) and sink.stats().events + sink.stats().lost == 101 and sink.stats().lost == lost


def test_a_publisher_that_is_faster_than_the_backend_holds_up_neither_flushes_nor_other_patterns_nor_the_end(bus, eventually, long):
    class Endless(Kept):
        def _take(self, batch):
            super()._take(batch)
            if batch.channel == "test.told":
                for record in batch:
                    bus.publish(Told(record.n + 1))
                assert bus.flush(long)  # so that there is always one more

    sink = Endless(bus, what=["test.told", "test.other"], every=0.001)
    bus.publish(Told(0))
    assert eventually(lambda: len(sink.flushed) > 2)
    bus.publish(Other(-7))
    assert eventually(lambda: -7 in sink.numbers)
    assert sink.close(long) and sink.numbers[:2] == [0, 1]


@pytest.mark.parametrize("every", [1e9, 1e300, float("inf")])
def test_no_time_is_too_long(bus, every):
    sink = Kept(bus, every=every)
    bus.publish(Told(1))
    assert sink.close(float("inf")) and sink.close(1e300) and sink.numbers == [1] and sink.stats().failed == 0


def test_a_backend_may_close_the_sink(bus, eventually, long):
    answers = []

    def close(sink, batch):
        if not answers:
            bus.publish(Told(2))
            answers.append(sink.close())

    sink = Kept(bus, take=close)
    bus.publish(Told(1))
    assert eventually(lambda: answers) and answers == [False]
    assert eventually(lambda: not bus.stats().mailboxes), "its mailbox is gone, though nobody waits for the end"
    assert sink.close(long) and sink.numbers == [1, 2] and sink.flushed == [True]


FORKED = """
import os, select, threading
import ringmain
from ringmain._sink import Sink

class Quiet(Sink):
    pass

bus = ringmain.Bus.process()
sink = Quiet("test.told", bus, title="quiet", every=3600.0, queue_events=64)
sink._start()
held, go = threading.Event(), threading.Event()

def hold():
    with sink._held:
        held.set()
        go.wait()

holder = threading.Thread(target=hold)
holder.start()
held.wait()
child = os.fork()
if child == 0:
    assert sink.stats().lost == 0 and repr(sink) and sink.close()
    sink._close_boxes()
    os._exit(7)
status = os.waitpid(child, 0)[1]
go.set()
holder.join()
print(os.waitstatus_to_exitcode(status), select.select([sink._wake], [], [], 0)[0], sink.close(60))
"""


def test_a_forked_child_neither_waits_for_threads_that_are_not_there_nor_wakes_its_parents():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("7 [] True\n", "")


def test_a_wrong_time_gets_a_sentence(bus):
    for every, error in (("x", TypeError), (None, TypeError), (True, ValueError), (0, ValueError), (float("nan"), ValueError), (10**400, ValueError)):
        with pytest.raises(error, match="every is .*; give seconds above 0"):
            Kept(bus, every=every)
    assert not bus.stats().mailboxes
