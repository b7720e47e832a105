"""Does a process in Python answer at its door, also while it waits with the GIL, and where its own recorders' dumps are?"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading

import pytest
import ringmain
from ringmain import comms

WALKS = not (3, 13) <= sys.version_info[:2] <= (3, 14)


def ask(path, word):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        peer.sendall(word.encode() + b"\n")
        heard = b""
        while some := peer.recv(65536):
            heard += some
    assert heard.endswith(b"\n\n")
    return heard.decode()


def test_a_door_answers_while_it_is_open(tmp_path):
    with ringmain.open_door(tmp_path) as door:
        assert os.path.dirname(door.path) == str(tmp_path)
        assert json.loads(ask(door.path, "who"))["pid"] == os.getpid()
        assert ringmain.open_door().path == door.path
        with pytest.raises(ValueError, match="has a door already"):
            ringmain.open_door(tmp_path / "another")
    assert door.path == "" and repr(door) == "<door closed>"
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_is_said(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(OSError, match="others may write to it"):
        ringmain.open_door(tmp_path)
    with pytest.raises(OSError, match="no absolute path"):
        ringmain.open_door("relative")
    with pytest.raises(TypeError, match="give a path, or nothing"):
        ringmain.open_door(7)


@pytest.mark.skipif(not WALKS, reason="this Python does not lend the function")
def test_stacks_are_told_to_a_child_of_a_process_that_waits_for_it_with_the_gil(tmp_path):
    """waitpid by PyDLL keeps the GIL until the child, which asks for the stacks, has ended."""
    with ringmain.open_door(tmp_path) as door:
        code = ("import socket, sys\n"
                "peer = socket.socket(socket.AF_UNIX)\n"
                "peer.connect(sys.argv[1])\n"
                "peer.sendall(b'stacks\\n')\n"
                "open(sys.argv[2], 'wb').write(b''.join(iter(lambda: peer.recv(65536), b'')))\n")
        child = subprocess.Popen([sys.executable, "-c", code, door.path, str(tmp_path / "stacks")])

        def waits_with_the_gil():
            return ctypes.PyDLL(None).waitpid(child.pid, None, 0)

        assert waits_with_the_gil() == child.pid
        child.returncode = 0
    said = (tmp_path / "stacks").read_text()
    assert said.startswith(f"Process {os.getpid()} (") and said.endswith("\n\n")
    assert "in waits_with_the_gil" in said or "in test_stacks_are_told" in said


@pytest.mark.skipif(not WALKS, reason="this Python does not lend the function")
def test_of_many_threads_the_oldest_is_there(tmp_path):
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(120)]
    for thread in threads:
        thread.start()
    with ringmain.open_door(tmp_path) as door:
        said = ask(door.path, "stacks")
    over.set()
    for thread in threads:
        thread.join()
    if "Of 12" in said:  # the interpreter shows 100
        assert "the oldest, which is left out above" in said
    assert "in test_of_many_threads_the_oldest_is_there" in said


@pytest.mark.skipif(not WALKS, reason="this Python does not lend the function")
def test_threads_that_come_go_and_call_meanwhile_never_harm_the_program(tmp_path):
    over = threading.Event()

    def deep(n):
        return deep(n - 1) if n else sum(range(10))

    def busy():
        while not over.is_set():
            deep(40)
            threading.Thread(target=deep, args=(5,)).start()

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    with ringmain.open_door(tmp_path) as door:
        for _ in range(300):
            assert "(most recent call first)" in ask(door.path, "stacks")
    over.set()
    for thread in threads:
        thread.join()


def test_a_dump_is_written_on_request_and_its_file_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "dumps" / "rank_"))
    with ringmain.open_door(tmp_path / "doors") as door, ringmain.Bus("dumped") as bus:
        assert "nothing is recorded in this process: give it a FlightRecorderHook" in ask(door.path, "dump")
        recorder = comms.FlightRecorderHook(isolated=True, rank=3)
        assert "its FlightRecorderHook hangs on no communicator; call register_with_comm()" in ask(door.path, "dump")
        recorder.register_with_comm(comms.new_comm("loopback", name="main", bus=bus))
        other = comms.FlightRecorderHook(isolated=True, rank=4)  # it has nothing to write, which is no trouble
        said = json.loads(ask(door.path, "dump"))
        assert said["files"] == [{"path": str(tmp_path / "dumps" / "rank_3"), "error": None}]
        assert (tmp_path / "dumps" / "rank_3").exists()
        recorder.unregister()
        assert "hangs on no communicator" in ask(door.path, "dump")
        del other


def test_a_dump_of_a_process_that_no_launcher_gave_a_rank_is_of_its_largest_group(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "rank_"))
    for variable in ("RANK", "SLURM_PROCID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "FLUX_TASK_RANK", "RINGMAIN_RANK"):
        monkeypatch.delenv(variable, raising=False)
    with ringmain.open_door(tmp_path / "doors") as door, ringmain.Bus("dumped") as bus:

        def program():
            part = comms.new_comm("loopback", name="world", bus=bus)
            rank = part.get_rank()
            recorder = comms.FlightRecorderHook(isolated=True)
            recorder.register_with_comm(part.split([rank], name=f"alone {rank}"))
            recorder.register_with_comm(part)
            part.barrier(False)
            files = json.loads(ask(door.path, "dump"))["files"] if rank == 2 else []
            part.barrier(False)
            return files

        files = comms.run_ranks(3, program)[2]
    assert sorted(row["path"] for row in files) == [str(tmp_path / f"rank_{rank}") for rank in range(3)]
    assert {row["error"] for row in files} == {None}
