"""Does a signal have the flight recorder's dump written, also where Python is stuck, and is the program's own handler called?"""

import os
import pickle
import signal
import subprocess
import sys

import pytest
from ringmain import comms

PRELUDE = """
import ctypes, os, signal, sys, threading, time
from ringmain import comms

comm = comms.new_comm("loopback", name="main")

def until_there(path):
    while not os.path.exists(path):
        os.sched_yield()

file = os.environ["TORCHCOMM_FR_DUMP_TEMP_FILE"] + "3"
"""


def run(tmp_path, script, code=0, **more):
    environment = os.environ | {"TORCHCOMM_FR_DUMP_TEMP_FILE": str(tmp_path / "rank_"), "RANK": "3"}
    ended = subprocess.run([sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, check=False, env=environment, **more)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def entries(tmp_path):
    return [entry["profiling_name"] for entry in pickle.loads((tmp_path / "rank_3").read_bytes())["entries"]]


def test_another_process_asks_and_the_file_is_there_whole(tmp_path):
    run(tmp_path, """
recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGUSR2)
recorder.register_with_comm(comm)
comm.all_reduce([1.0], comms.ReduceOp.SUM)
if os.fork() == 0:
    os.kill(os.getppid(), signal.SIGUSR2)
    os._exit(0)
os.wait()
until_there(file)
assert recorder.complaint() == ""
""")
    assert entries(tmp_path) == ["nccl:all_reduce"]


def test_the_programs_own_handler_is_called_and_is_there_again_at_the_end(tmp_path):
    assert run(tmp_path, """
def own(number, frame):
    print("own", signal.Signals(number).name)

signal.signal(signal.SIGUSR2, own)
recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGUSR2)
assert signal.getsignal(signal.SIGUSR2) is own
signal.raise_signal(signal.SIGUSR2)
until_there(file)
os.remove(file)
del recorder
signal.raise_signal(signal.SIGUSR2)
assert not os.path.exists(file)
""") == "own SIGUSR2\nown SIGUSR2\n"


def test_it_is_written_though_python_is_stuck_with_the_gil(tmp_path):
    assert run(tmp_path, """
recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGUSR2)
recorder.register_with_comm(comm)
comm.barrier()
reads, writes = os.pipe()
if os.fork() == 0:
    os.kill(os.getppid(), signal.SIGUSR2)
    until_there(file)
    if sys.version_info < (3, 13):  # later ones do not lend their stacks: docs/door.md
        until_there(os.path.join(os.path.dirname(file), "stacks-3.txt"))
    os.write(writes, b"x")    # only now may the parent go on
    os._exit(0)

def is_stuck():
    # PyDLL keeps the GIL during the call; and the call is not interrupted by the signal.
    return ctypes.PyDLL(None, use_errno=True).read(reads, ctypes.create_string_buffer(1), ctypes.c_size_t(1))

print(is_stuck())
os.wait()
""") == "1\n"
    assert entries(tmp_path) == ["nccl:all_reduce_barrier"]
    if sys.version_info < (3, 13):
        assert "in is_stuck" in (tmp_path / "stacks-3.txt").read_text()


def test_ctrl_c_is_still_pythons(tmp_path):
    assert run(tmp_path, """
recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGINT)
try:
    signal.raise_signal(signal.SIGINT)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
until_there(file)
""") == "interrupted\n"


@pytest.mark.parametrize("first", ["recorder", "faulthandler"])
def test_faulthandler_on_the_same_signal_tells_its_stacks_too(tmp_path, first):
    script = {"recorder": "recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGUSR2)\n",
              "faulthandler": f"faulthandler.register(signal.SIGUSR2, file=sys.stdout, chain={first == 'recorder'})\n"}
    told = run(tmp_path, "import faulthandler\n" + script.pop(first) + "".join(script.values()) + """
for _ in range(2):
    signal.raise_signal(signal.SIGUSR2)
    until_there(file)
    os.remove(file)
""")
    assert told.count("most recent call first") == 2


def test_without_a_word_for_it_the_signal_ends_the_process_as_ever(tmp_path):
    run(tmp_path, """
recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_failure=True, dumps_on_abort=True)
recorder.register_with_comm(comm)
signal.raise_signal(signal.SIGUSR2)
""", code=-signal.SIGUSR2)
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_is_as_it_would_be(tmp_path):
    run(tmp_path, """
recorder = comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGUSR2)
pid = os.fork()
if pid == 0:
    signal.raise_signal(signal.SIGUSR2)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == signal.SIGUSR2    # it was ended by it, as without us
assert not os.path.exists(file)
signal.raise_signal(signal.SIGUSR2)
until_there(file)
""")


@pytest.mark.parametrize(("number", "kind", "why"), [
    (signal.SIGKILL, ValueError, "dumps_on_signal is SIGKILL, which no program can handle: give SIGUSR1 or SIGUSR2"),
    (signal.SIGSEGV, ValueError, "dumps_on_signal is SIGSEGV, after which a program cannot go on"),
    (signal.SIGTERM, ValueError, "dumps_on_signal is SIGTERM, .*set the program's own handler first"),
    (0, ValueError, "dumps_on_signal is 0; give a whole number from 1 to 64"), (99, ValueError, "from 1 to 64"),
    (32, ValueError, "32, which is no signal that a program can handle"), ("SIGUSR2", TypeError, "dumps_on_signal is 'SIGUSR2'")])
def test_a_signal_that_cannot_be_is_refused(number, kind, why):
    with pytest.raises(kind, match=why):
        comms.FlightRecorderHook(10, isolated=True, rank=3, dumps_on_signal=number)


def test_it_needs_a_rank(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="dumps_on_signal needs a rank"):
        comms.FlightRecorderHook(10, isolated=True, dumps_on_signal=signal.SIGUSR2)


def test_what_could_not_be_written_is_said(monkeypatch, eventually):
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", "/proc/no/rank_")
    recorder = comms.FlightRecorderHook(10, isolated=True, rank=3, dumps_on_signal=signal.SIGUSR2)
    assert recorder.complaint() == ""
    signal.raise_signal(signal.SIGUSR2)
    assert eventually(recorder.complaint)
    assert "/proc/no" in recorder.complaint()
