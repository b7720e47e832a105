"""What Bus.record() leaves, as `ringmain post-mortem` reads it: of this process, of one that was killed, forked or ended."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import ringmain

PROGRAM = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "bin" / "ringmain"

PRELUDE = """
import os, signal, sys
import ringmain

@ringmain.event("test.tick")
class Tick:
    n: int
    word: str = ""

folder = sys.argv[1]
"""


def post_mortem(where):
    told = subprocess.run([PROGRAM, "post-mortem", "--json", "--last", "100000", where], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    found, = map(json.loads, told.stdout.splitlines())
    return found


def events(found):
    return [event for ring in found["rings"] for event in ring["events"]]


def run(script, folder, code):
    ended = subprocess.run([sys.executable, "-c", PRELUDE + script, str(folder)], capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ended.stderr == ""
    return post_mortem(folder)


@pytest.fixture
def recording(bus, tmp_path):
    with bus.record("test.>", folder=tmp_path) as made:
        yield made


def test_a_process_that_is_killed_leaves_what_its_threads_published_and_what_was_open(tmp_path):
    found = run("""
import threading
from ringmain import comms

bus = ringmain.Bus.process()
bus.record(["test.*", "collective.>"], folder=folder)    # nobody holds it
channel = bus.channel(Tick)
for n in range(100):
    channel.publish(n=n, word="main")
other = threading.Thread(target=bus.publish, args=(Tick(7, "other"),))
other.start()
other.join()

def rank():
    comm = comms.new_comm("loopback", name="dp")
    comm.barrier()
    if comm.get_rank() == 0:
        comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM, async_op=True)    # rank 1 never joins
        os.kill(os.getpid(), signal.SIGKILL)
    comm.recv([0.0], 0)

comms.run_ranks(2, rank)
""", tmp_path, -signal.SIGKILL)
    assert (found["process"]["state"], found["process"]["closed"], found["unrecorded"]) == ("dead", False, 0)
    ticks = [event for event in events(found) if event["channel"] == "test.tick"]
    assert [event["event"]["n"] for event in ticks if event["event"]["word"] == "main"] == list(range(100))
    assert [event["event"]["n"] for event in ticks if event["event"]["word"] == "other"] == [7]
    assert len({event["thread"] for event in ticks}) == 2
    assert ("all_reduce", "dp") in [(one["op"], one["group"]) for one in found["open_operations"]]
    assert "barrier" not in [one["op"] for one in found["open_operations"]]
    assert [one["pattern"] for one in found["patterns"]] == ["test.*", "collective.>"]


def test_it_counts_as_interest_and_is_over_after_reset(bus, ticks, recording):
    assert ticks.wanted and recording.recording and bus.recordings() == [recording]
    assert ticks.publish(n=1).code == "accepted"
    before = post_mortem(recording.path)
    assert (before["process"]["state"], before["process"]["closed"]) == ("alive", False)
    assert [event["event"]["n"] for event in events(before)] == [1]
    recording.reset()
    assert not ticks.wanted and not recording.recording and bus.recordings() == []
    assert ticks.publish(n=2).code == "unheard"
    recording.close()  # again
    after = post_mortem(recording.path)
    assert after["process"]["closed"] and [event["event"]["n"] for event in events(after)] == [1]
    assert recording.path and repr(recording) == f"<recording of 'test.>', {recording.path}, ended>"


def test_what_was_refused_is_there_with_its_code(bus, ticks, recording):
    with bus.subscribe_inline(ticks, lambda event: "too large" if event.n > 1 else None):
        assert [ticks.publish(n=n).code for n in (1, 2)] == ["accepted", "vetoed"]
    assert [(event["event"]["n"], event["code"]) for event in events(post_mortem(recording.path))] == [(1, "accepted"), (2, "vetoed")]


def test_many_rows_at_once_are_records_each(bus, ticks, recording):
    import numpy

    rows = numpy.zeros(20, ticks.dtype)
    rows["n"] = numpy.arange(20)
    assert ticks.publish_all(rows).accepted == 20
    assert [event["event"]["n"] for event in events(post_mortem(recording.path))] == list(range(20))


def test_the_scope_of_with_is_the_recordings(bus, ticks, tmp_path):
    with bus.record("test.tick", folder=str(tmp_path)) as made:
        assert ticks.wanted
    assert not ticks.wanted and post_mortem(made.path)["process"]["closed"]


def test_one_that_nobody_holds_goes_on_until_its_bus_is_closed_or_gone(tmp_path, tick):
    bus = ringmain.Bus("short")
    made = weakref.ref(bus.record("test.>", folder=tmp_path / "closed"))
    gc.collect()
    assert made() is not None and made() in bus.recordings() and bus.channel(tick).wanted
    bus.close()
    assert post_mortem(tmp_path / "closed")["process"]["closed"]
    dropped = ringmain.Bus("dropped")
    dropped.record("test.>", folder=tmp_path / "gone")
    del dropped
    gc.collect()
    assert post_mortem(tmp_path / "gone")["process"]["closed"]


def test_a_bus_is_closed_though_a_recording_of_it_is_held(tmp_path, tick):
    with ringmain.Bus("closed first") as bus:
        made = bus.record("test.>", folder=tmp_path)
        bus.publish(tick(1))
    assert not made.recording and post_mortem(made.path)["process"]["closed"]
    made.reset()


@pytest.mark.parametrize("bus", ["ringmain.Bus.process()", "ringmain.Bus()"])
@pytest.mark.parametrize(("end", "code"), [("", 0), ("sys.exit(3)", 3), ("os._exit(4)", 4)])
def test_a_program_that_ends_while_it_records_ends_as_it_would(tmp_path, bus, end, code):
    found = run(f"""
bus = {bus}
recording = bus.record("test.>", folder=folder)
channel = bus.channel(Tick)

class AtTheEnd:
    def __del__(self, channel=channel):
        channel.publish(n=2)

import atexit
atexit.register(bus.publish, Tick(1))
last = AtTheEnd()
{end}
""", tmp_path, code)
    assert (found["process"]["state"], found["process"]["closed"]) == ("dead", False)
    assert [event["event"]["n"] for event in events(found)][:1] == ([] if code == 4 else [1])


def test_a_forked_child_records_nothing_into_its_parents_file(tmp_path):
    found = run("""
bus = ringmain.Bus.process()
recording = bus.record("test.>", folder=folder)
bus.publish(Tick(1))
pid = os.fork()
if pid == 0:
    fine = not recording.recording and bus.recordings() == [] and bus.publish(Tick(2)).code == "forked"
    recording.reset()
    try:
        bus.record("test.>", folder=folder)
    except ValueError as refused:
        fine = fine and "make a Bus in the child" in str(refused)
    with ringmain.Bus() as own, own.record("test.>", folder=folder + "/child") as mine:
        own.publish(Tick(3))
        fine = fine and mine.recording
    os._exit(0 if fine else 1)
assert os.waitpid(pid, 0)[1] == 0
assert recording.recording
bus.publish(Tick(4))
os._exit(0)
""", tmp_path, 0)
    assert [event["event"]["n"] for event in events(found)] == [1, 4]
    child = post_mortem(tmp_path / "child")
    assert [event["event"]["n"] for event in events(child)] == [3] and child["process"]["closed"]


def test_it_begins_and_ends_while_threads_publish(bus, ticks, tmp_path):
    over = threading.Event()

    def publish():
        while not over.is_set():
            ticks.publish(n=1)

    threads = [threading.Thread(target=publish) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with bus.record("test.>", folder=tmp_path, files_kept=0, file_bytes=1 << 20, ring_bytes=4096) as made:
                ticks.publish(n=2)
            found = post_mortem(made.path)
            assert found["unrecorded"] == 0 and len(found["rings"]) > 0
            for ring in found["rings"]:
                assert ring["written"] == ring["readable"] + ring["overwritten"] and ring["under_way"] == 0
            assert 2 in [event["event"]["n"] for event in events(found)]
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_its_file_has_the_sizes_and_the_company_that_were_asked_for(bus, tmp_path):
    with bus.record("test.>", folder=tmp_path, file_bytes=2 << 20, ring_bytes=4096) as made:
        assert os.path.getsize(made.path) == 2 << 20
        assert os.path.dirname(made.path) == str(tmp_path) and made.complaint == ""
    with bus.record("test.>", folder=tmp_path, file_bytes=1 << 20, files_kept=None):
        assert len(list(tmp_path.glob("*.ring"))) == 2


def test_where_no_file_can_be_had_it_is_in_memory_and_says_so(bus, ticks, tmp_path):
    (tmp_path / "taken").write_text("no folder")
    with pytest.warns(RuntimeWarning, match="memory") as told:
        made = bus.record("test.>", folder=tmp_path / "taken")
    assert told[0].filename == __file__
    with made:
        assert made.path == "" and made.complaint == str(told[0].message) and made.recording and ticks.publish(n=1)
        assert repr(made) == "<recording of 'test.>', memory only>"


@pytest.mark.parametrize(("patterns", "more", "kind", "why"), [
    ("", {}, ValueError, "pattern of channels to record is empty"), ([], {}, ValueError, "is empty"), ("a..b", {}, ValueError, "a..b"),
    ("**", {}, ValueError, r"\*"), ("own.>.x", {}, ValueError, ">"), ("a b", {}, ValueError, "space"),
    ("a.>, b.*", {}, ValueError, r"join several by commas alone, as collective.>,train.\*"), ("a\0b", {}, ValueError, "control character"),
    ("a\ud800", {}, ValueError, "which no channel is called"), (["a", "b\udcff"], {}, ValueError, "which no channel is called"),
    ("test.>", {"folder": "/a\ud800"}, ValueError, "give a path"),
    (",".join("abcdefghi"), {}, ValueError, "8 patterns at most, and these are 9"),
    (7, {}, TypeError, "patterns is 7; give a str such as"), (["test.>", 7], {}, TypeError, "a pattern is 7; give a str"),
    (b"test.>", {}, TypeError, "give a str"), ("test.>", {"folder": 7}, TypeError, "folder is 7; give a path"),
    ("test.>", {"folder": ""}, ValueError, "give a path"), ("test.>", {"folder": "a\0b"}, ValueError, "give a path"),
    ("test.>", {"ring_bytes": 5000}, ValueError, "rings of 4 KiB or a larger power of two"), ("test.>", {"ring_bytes": 64}, ValueError, "rings of 4 KiB or a larger power of two"),
    ("test.>", {"file_bytes": 4096}, ValueError, "1 MiB to 4 GiB"), ("test.>", {"file_bytes": -1}, ValueError, "file_bytes is -1"),
    ("test.>", {"file_bytes": 1.5}, TypeError, "file_bytes is 1.5"), ("test.>", {"files_kept": -1}, ValueError, "files_kept is -1")])
def test_a_recording_that_cannot_be_is_refused_in_a_sentence(bus, tmp_path, patterns, more, kind, why):
    with pytest.raises(kind, match=why) as refused:
        bus.record(patterns, **{"folder": tmp_path, **more})
    assert "\n" not in str(refused.value) and bus.recordings() == [] and list(tmp_path.glob("*.ring")) == []


def test_where_the_process_may_map_no_more_a_sentence_says_so(tmp_path):
    code = ("import os, resource, sys, ringmain\n"
            "bus = ringmain.Bus()\n"
            "bus.record('test.>', folder=sys.argv[1]).reset()\n"  # whatever else it needs is there
            "room = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE')\n"
            "resource.setrlimit(resource.RLIMIT_AS, (room + (4 << 20), resource.RLIM_INFINITY))\n"
            "try:\n"
            "    bus.record('test.>', folder=sys.argv[1])\n"
            "except MemoryError as none:\n"
            "    print(none)\n"
            "print(len(os.listdir(sys.argv[1])), bus.recordings())\n")
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert told.stdout == ("the process has no room for the 8388608 bytes of a flight recorder (ulimit -v); give it fewer: Cannot allocate "
                           "memory\n1 []\n"), told


def test_a_folder_may_have_spaces_in_its_name(bus, tmp_path):
    for name in ("with space", " ", "end\n"):
        with bus.record("test.>", folder=tmp_path / name) as made:
            assert made.path.startswith(str(tmp_path / name) + "/flight-")


def test_a_bus_has_four_at_most(bus, tmp_path):
    made = [bus.record("test.>", folder=tmp_path, file_bytes=1 << 20) for _ in range(4)]
    with pytest.raises(ValueError, match="4 recordings at most; end one first"):
        bus.record("test.>", folder=tmp_path, file_bytes=1 << 20)
    made[2].reset()
    bus.record("test.>", folder=tmp_path, file_bytes=1 << 20)
    assert len(bus.recordings()) == 4


def test_a_closed_bus_records_nothing(tmp_path):
    bus = ringmain.Bus("closed")
    bus.close()
    with pytest.raises(RuntimeError, match="the bus is closed"):
        bus.record("test.>", folder=tmp_path)


def test_it_is_made_by_a_bus_only():
    with pytest.raises(TypeError, match=r"a recording is what bus.record\(…\) returns"):
        ringmain.Recording()
