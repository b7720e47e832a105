"""comms.Watchdog on groups in which a rank never joins: what is said, what is called before the abort, and in which thread."""

import datetime
import subprocess
import sys
import threading

import pytest
import ringmain
from ringmain import comms

SOON = 1e-6  # seconds: a deadline that every operation has passed when it is looked at


class Overdue:
    """What is heard of collective.overdue."""

    def __init__(self, bus):
        self.all, self.first = [], threading.Event()
        self.subscription = bus.subscribe("collective.overdue", self)

    def __call__(self, batch):
        self.all += list(batch)
        self.first.set()


@pytest.fixture
def comm(bus):
    return comms.new_comm("loopback", name="alone", bus=bus)


@pytest.fixture
def open_one(comm):
    """Issues an operation that is open until it is told otherwise."""
    made = []

    def issue():
        with comm._native.issue("barrier") as issuing:
            made.append(issuing.operation)
        return made[-1]

    yield issue
    for operation in made:
        operation.completed()


def looked(watchdog):
    """What the next look that finds something finds: time passes between the issue and the look, unless the clock has not moved."""
    while not (found := watchdog.look()):
        pass
    return found


def test_a_rank_that_never_joins_is_said_before_the_abort(bus, caplog):
    overdue, told = Overdue(bus), []

    def before_abort(event):
        told.append((event, threading.current_thread().name, threading.main_thread() is threading.current_thread()))

    def rank():
        comm = comms.new_comm("loopback", name="dp", bus=bus)
        if comm.get_rank() == 1:
            return over.wait()
        try:
            comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM)
        except comms.CommunicatorAborted as error:
            return told[:], str(error)
        finally:
            over.set()

    over = threading.Event()
    with comms.Watchdog(bus, from_issue=SOON, period=0.001, before_abort=before_abort, abort=True) as watchdog:
        (before, words), _ = comms.run_ranks(2, rank)
        assert overdue.first.wait(60)
    (event, thread, is_main), = before  # it had been called, and had returned, when the group was given up
    assert (event.op, event.group, event.rank, event.since) == ("all_reduce", "dp", 0, "issued")
    assert event.waited_ns > event.deadline_ns == 1000
    assert thread.startswith("hook a watchdog") and not is_main
    assert words == "all_reduce is overdue" and watchdog.raised == 0 and watchdog.looks > 0
    assert overdue.all[0]._asdict() == event._asdict()
    assert not caplog.records


def test_the_recorders_file_is_there_before_the_abort_and_an_operations_own_timeout_counts(tmp_path):
    """In a process of its own, as the last words of a process are said once."""
    script = f"""
import os
from ringmain import Bus, comms
os.environ["TORCHCOMM_FR_DUMP_TEMP_FILE"] = {str(tmp_path / "rank_")!r}
bus, there = Bus(), []
recorder = comms.FlightRecorderHook(10, True, rank=3)
found = []
with comms.Watchdog(bus, from_issue=3600, period=0.001, recorder=recorder, abort=True,
                    before_abort=lambda event: there.append(os.path.exists({str(tmp_path / "rank_3")!r}))):
    bus.subscribe("collective.overdue", lambda batch: found.extend(batch))
    comm = comms.new_comm("loopback", name="alone", bus=bus)
    recorder.register_with_comm(comm)
    with comm._native.issue("barrier", timeout=1e-6) as issuing:
        operation = issuing.operation
    while not comm._native.aborted:
        pass
bus.flush()
assert there == [True], there
assert [event.deadline_ns for event in found] == [1000], found
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


def test_a_recorder_without_a_rank_is_refused(bus, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="has no rank"):
        comms.Watchdog(bus, recorder=comms.FlightRecorderHook(10, True))
    with pytest.raises(TypeError, match="a FlightRecorderHook"):
        comms.Watchdog(bus, recorder=3)


def test_each_operation_is_said_once_for_its_issue_and_once_for_its_start(bus, open_one, long):
    overdue = Overdue(bus)
    with comms.Watchdog(bus, from_issue=SOON, from_start=datetime.timedelta(microseconds=1), period=0) as watchdog:
        operation = open_one()
        first, = looked(watchdog)
        assert (first.op_id, first.since, first.look) == (operation.id, "issued", watchdog.looks)
        assert watchdog.look() == []
        assert operation.started()
        second, = looked(watchdog)
        assert (second.op_id, second.since) == (operation.id, "started")
        operation.completed()
        assert watchdog.look() == []
    assert bus.flush(long)
    assert [event.since for event in overdue.all] == ["issued", "started"]


def test_it_is_interest_enough_and_no_longer_than_it_lives(bus, open_one):
    assert open_one().id == 0
    watchdog = comms.Watchdog(bus, from_issue=3600, period=0)
    assert open_one().id != 0 and watchdog.look() == [] and not watchdog.closed
    watchdog.close()
    watchdog.close()
    assert open_one().id == 0 and watchdog.closed and watchdog.look() == [] and watchdog.looks == 1
    assert repr(watchdog) == "<watchdog, 1 looks, closed>"


def test_without_a_deadline_the_communicators_time_out_counts(bus):
    comm = comms.new_comm("loopback", name="timed", bus=bus, timeout=SOON)
    other = comms.new_comm("loopback", name="untimed", bus=bus)
    with comms.Watchdog(bus, period=0) as watchdog:
        with comm._native.issue("barrier") as timed, other._native.issue("barrier") as untimed:
            pass
        found, = looked(watchdog)
        assert (found.group, found.deadline_ns) == ("timed", 1000)
        watchdog.register_with_comm(comm)
        timed.operation.completed()
        untimed.operation.completed()


def test_one_that_nobody_holds_goes_on(bus, open_one, long):
    overdue = Overdue(bus)
    comms.Watchdog(bus, from_issue=SOON, period=0.001)
    try:
        open_one()
        assert overdue.first.wait(long)
    finally:
        for watchdog in list(comms._watchdog._open):
            watchdog.close()


# Each in a process of its own: before_abort is called once in a process.
PRELUDE = """
import logging, os, sys, threading
import ringmain
from ringmain import comms

logging.basicConfig(level=logging.ERROR, stream=sys.stdout, format="%(name)s: %(message)s")
bus = ringmain.Bus.process()

def hang(before_abort, name="dp", **more):
    watchdog = comms.Watchdog(from_issue=1e-6, period=0.001, before_abort=before_abort, **more)
    over = threading.Event()

    def rank():
        comm = comms.new_comm("loopback", name=name)
        if comm.get_rank() == 1:
            return over.wait()
        try:
            comm.all_reduce([1.0], comms.ReduceOp.SUM)
        except comms.CommunicatorAborted as error:
            print("given up:", error)
        finally:
            over.set()

    comms.run_ranks(2, rank)
    return watchdog
"""


def run(script, code=0):
    ended = subprocess.run([sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ended.stderr == "", ended.stderr
    return ended.stdout


def test_what_before_abort_raises_is_logged_and_counted_and_the_group_is_given_up():
    told = run("""
def before_abort(event):
    raise ValueError("no dump")

watchdog = hang(before_abort, abort=True)
print("raised", watchdog.raised)
""")
    assert "ringmain: subscriber \"a watchdog's before_abort\" raised ValueError" in told and "ValueError: no dump" in told
    assert "given up: all_reduce is overdue" in told and "raised 1" in told


def test_one_that_does_not_return_is_left_behind_and_the_process_ends():
    told = run("""
reads, _ = os.pipe()
hang(lambda event: os.read(reads, 1), before_abort_within=0.01, abort=True)
""")
    assert told == "given up: all_reduce is overdue\n"


def test_it_is_called_once_in_a_process_and_a_second_group_is_given_up_all_the_same():
    told = run("""
hang(lambda event: print("before", event.op), abort=True)
hang(lambda event: print("again", event.op), abort=True)
""")
    assert told.splitlines() == ["before all_reduce"] + ["given up: all_reduce is overdue"] * 2


def test_it_may_be_closed_inside_what_it_calls():
    told = run("""
watchdog = None
known = threading.Event()

def before_abort(event):
    known.wait()
    watchdog.close()
    print("closed", watchdog.closed)

def made(*arguments, **named):
    global watchdog
    watchdog = Watchdog(*arguments, **named)
    known.set()
    return watchdog

Watchdog, comms.Watchdog = comms.Watchdog, made
hang(before_abort, abort=True)
watchdog.close()
""")
    assert told == "closed True\ngiven up: all_reduce is overdue\n"


@pytest.mark.parametrize("period", [0, 0.001])
def test_a_hook_that_its_look_calls_may_close_it_in_whichever_thread(period):
    told = run(f"""
comm = comms.new_comm("loopback", name="own")
made, done = threading.Event(), threading.Event()

def ended(args):
    made.wait()
    watchdog.close()
    print(args.how, watchdog.closed, threading.current_thread() is threading.main_thread())
    done.set()

comm.register_completion_hook(ended)
watchdog = comms.Watchdog(from_issue=1e-6, period={period}, abort=True)
made.set()
with comm._native.issue("barrier", async_op=True):
    pass
while {period} == 0 and not done.is_set():
    watchdog.look()
done.wait()
watchdog.close()
""")
    assert told == f"aborted True {period == 0}\n"


def test_a_forked_child_looks_at_nothing_and_ends():
    told = run("""
watchdog = comms.Watchdog(from_issue=1e-6, period=0.001)
while watchdog.looks == 0:
    os.sched_yield()
pid = os.fork()
if pid == 0:
    fine = watchdog.look() == []
    watchdog.close()
    os._exit(0 if fine and watchdog.closed else 1)
print(os.waitpid(pid, 0)[1], watchdog.closed)
""")
    assert told == "0 False\n"


def test_the_interpreter_ends_while_it_looks():
    assert run("""
hang(None, abort=True)
raise SystemExit(3)
""", code=3) == "given up: all_reduce is overdue\n"


@pytest.mark.parametrize(("named", "kind", "why"), [
    ({"from_issue": 0}, ValueError, "from_issue is 0; give seconds above 0, or None for the time-out"),
    ({"from_start": -1}, ValueError, "from_start is -1; give seconds from 0"), ({"from_issue": "x"}, TypeError, "from_issue is 'x'; give seconds"),
    ({"period": None}, TypeError, "period is None; give seconds"), ({"period": float("nan")}, ValueError, "period is nan"),
    ({"period": -1}, ValueError, "period is -1; give seconds from 0"), ({"period": -float("inf")}, ValueError, "period is -inf"),
    ({"period": 1e-4}, ValueError, "period is 100000 ns, and it would do nothing but look; give it 1 ms or more, or 0 where"),
    ({"period": 5e-324}, ValueError, "period is 1 ns"), ({"from_issue": float("nan")}, ValueError, "from_issue is nan"),
    ({"before_abort_within": -1}, ValueError, "before_abort_within is -1"), ({"before_abort": 7}, TypeError, "7 cannot be called"),
    ({"bus": 7}, TypeError, "bus is 7; give a ringmain.Bus")])
def test_a_watchdog_that_cannot_be_is_refused_in_a_sentence(named, kind, why):
    with pytest.raises(kind, match=why):
        comms.Watchdog(**named)


@pytest.mark.parametrize("huge", [float("inf"), 1e300, 10**30, datetime.timedelta.max])
def test_a_time_beyond_all_clocks_is_a_long_one(bus, open_one, huge):
    with comms.Watchdog(bus, from_issue=huge, from_start=huge, period=huge, before_abort_within=huge) as watchdog:
        open_one()
        assert watchdog.look() == [] and watchdog.looks == 1


def test_where_there_is_no_thread_for_it_a_sentence_says_so():
    code = ("import os, resource\n"
            "from ringmain import comms\n"
            "import ringmain\n"
            "bus = ringmain.Bus.process()\n"
            "comms.Watchdog(bus, period=0).close()\n"
            "room = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE')\n"
            "resource.setrlimit(resource.RLIMIT_AS, (room + (4 << 20), resource.RLIM_INFINITY))\n"
            "try:\n"
            "    comms.Watchdog(bus)\n"
            "except OSError as none:\n"
            "    print(none)\n")
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stdout == "the system gives no thread for a watchdog: Resource temporarily unavailable (ulimit -u, or -v)\n", told


def test_a_bus_that_is_closed_has_none():
    bus = ringmain.Bus("closed")
    bus.close()
    with pytest.raises(RuntimeError, match="the bus is closed"):
        comms.Watchdog(bus)


def test_a_bus_that_is_closed_before_it_is_no_trouble(open_one, bus):
    watchdog = comms.Watchdog(bus, from_issue=SOON, period=0.001)
    open_one()
    bus.close()
    watchdog.close()
