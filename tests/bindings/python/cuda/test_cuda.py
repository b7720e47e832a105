"""CUDA's source from Python: on a machine without a driver, and over a driver, runtime and CUPTI that are played."""

import os
import re
from pathlib import Path

import pytest
import ringmain
from over_fakes import no_driver, played, run

cuda = pytest.importorskip("ringmain.cuda", reason="this build has no source of CUDA's calls")


@no_driver
def test_without_a_driver_one_sentence_says_so_and_cuda_source_as_well(bus, keep, long):
    bus.subscribe("cuda.source", keep)
    with pytest.raises(RuntimeError, match="libcuda") as refused:
        cuda.attach(bus)
    assert "\n" not in str(refused.value)
    assert bus.flush(long)
    [[notice]] = keep.batches
    assert (notice.state, notice.owner) == ("unavailable", "") and notice.reason[:40] == str(refused.value)[:40]


@pytest.mark.parametrize("options, words", [
    ({"lane_events": 5}, "^lane_events is 5; give a whole number from 64 to 1048576$"),
    ({"handles": 7}, "^handles is 7; give a whole number from 1024 to 16777216$"),
    ({"cupti": "libcupti.so"}, "^cupti is 'libcupti.so'; give the library's whole path"), ({"cupti": "/lib/"}, "whole path"), ({"cupti": "/a,b"}, "without a comma"),
    ({"lane_events": -1}, "lane_events is -1")])
def test_options_that_cannot_be_are_refused_before_anything_is_looked_for(bus, options, words):
    with pytest.raises(ValueError, match=words):
        cuda.attach(bus, **options)


def test_its_limits_are_the_librarys():
    """With a number beyond them the library says its own."""
    import ringmain._cuda_library as own
    bus = ringmain.Bus.process()
    for word, (least, most) in (("lane", cuda._LANE_EVENTS), ("handles", cuda._HANDLES)):
        for beyond in (least - 1, most + 1):
            with pytest.raises(ValueError, match=f"from {least} to {most}, and not '{word}={beyond}'"):
                own.load().attach(bus._native, f"{word}={beyond}")


@pytest.mark.parametrize("options", [{"hold": 1}, {"own": "yes"}, {"lane_events": "many"}, {"cupti": 7}, {"bus": "mine"}])
def test_what_is_of_another_type_is_refused(bus, options):
    with pytest.raises(TypeError, match="give"):
        cuda.attach(**{"bus": bus, **options})


def test_a_source_is_made_by_attach_alone():
    with pytest.raises(TypeError, match=r"made by ringmain\.cuda\.attach"):
        cuda.Source()


def test_a_copy_without_the_library_says_so_at_the_import():
    program = ("import ringmain._native as n; n.cuda_library = 'libringmain_of_nobody.so'\n"
               "try: import ringmain.cuda\n"
               "except ImportError as error: import json; print(json.dumps(str(error)))")
    assert run(program) == ("this copy of ringmain has no libringmain_of_nobody.so, which CUDA's source is; install ringmain "
                            "again")


def test_the_package_loads_nothing_of_cuda_by_itself():
    program = "import ringmain, json; from ringmain import _cuda_library; print(json.dumps(_cuda_library.loaded() is None))"
    assert run(program) is True


CALLS = """
import ctypes, json, sys, threading
import ringmain, ringmain.cuda
runtime = ctypes.CDLL("libcudart.so.13")
bus = ringmain.Bus("of a test")
heard = []
bus.subscribe("cuda.>", lambda batch: heard.extend((batch.channel, e._asdict()) for e in batch))
def record():
    event = ctypes.c_void_p()
    assert runtime.cudaEventCreate(ctypes.byref(event)) == 0
    assert runtime.cudaEventRecord(event, None) == 0
    assert runtime.cudaEventDestroy(event) == 0
def told():
    assert bus.flush(600)
    made = [channel for channel, _ in heard if channel.startswith("cuda.event")]
    states = [(e["state"], e["owner"]) for channel, e in heard if channel == "cuda.source"]
    heard.clear()
    return made, states
"""


@played
def test_calls_are_heard_while_it_is_attached_and_not_after():
    said = run(CALLS + """
source = ringmain.cuda.attach(bus)
record()
while_attached, state = told(), source.state
ended, again = source.detach(), source.detach()
record()
counts = source.counts()
print(json.dumps([while_attached, state, counts.published >= 3, ended, again, told(), source.state, counts.refused, repr(source)]))
""")
    three = ["cuda.event_creation", "cuda.event_record", "cuda.event_deletion"]
    assert sorted(said[0][0]) == sorted(three) and said[0][1] == [["attached", ""]]
    assert said[1:5] == ["attached", True, "done", "was_not_attached"]
    assert said[5] == [[], [["detached", ""]]]
    assert said[6:] == ["detached", 0, "<CUDA's source on <bus 'of a test'>: detached>"]


@played
def test_what_the_page_shows_runs_as_it_stands():
    page = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[4])) / "docs/python.md"
    [shown] = [text for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
               if "ringmain.cuda.attach" in text]
    heard, raised = run("""
import ctypes, json, sys
runtime, address, said = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p(), []
space = {"train": lambda: runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64)), "print": lambda *words: said.append(words)}
exec(sys.argv[1], space)
space["bus"].flush()
print(json.dumps([[words for words in said if len(words) == 3], space["seen"].raised]))""", shown)
    assert ["cuda.memory_allocation", "cudaMalloc", 0] in heard and raised == 0


@played
def test_it_is_lent_and_taken_back_and_with_hold_it_is_not():
    said = run(CALLS + """
with ringmain.cuda.attach(bus) as source:
    lent = source.lend("a tool"), source.lend("a tool"), source.state
    record()
    away = told()
    back = source.take_back(), source.take_back(), source.state
    record()
    here = told()
with ringmain.cuda.attach(bus, hold=True) as source:
    try:
        source.lend("a tool")
    except RuntimeError as error:
        held = str(error)
print(json.dumps([lent, away, back, here, held, source.state]))
""")
    assert said[0] == [True, False, "lent"] and said[1] == [[], [["attached", ""], ["lent", "a tool"]]]
    assert said[2] == [True, False, "attached"] and len(said[3][0]) == 3 and said[3][1][0][0] == "attached"
    assert "hold" in said[4] and said[5] == "detached"


@played
def test_a_second_source_is_refused_with_the_first_ones_bus():
    said = run(CALLS + """
with ringmain.cuda.attach(bus), ringmain.Bus("another") as other:
    try:
        ringmain.cuda.attach(other)
    except RuntimeError as error:
        print(json.dumps(str(error)))
""")
    assert "of a test" in said and "\n" not in said


@played
def test_a_source_that_nobody_holds_and_the_end_of_the_process_detach_it():
    said = run(CALLS + """
import gc
source = ringmain.cuda.attach(bus)
del source
gc.collect()
record()
first = told()
kept = ringmain.cuda.attach(bus)  # and is still attached when the interpreter ends
print(json.dumps(first))
""")
    assert said == [[], [["attached", ""], ["detached", ""]]]


@played
def test_detach_waits_without_the_gil_for_a_call_whose_inline_subscriber_needs_it():
    said = run(CALLS + """
inside, go_on = threading.Event(), threading.Event()
def judge(event):
    inside.set()
    assert go_on.wait(600)
bus.subscribe_inline("cuda.event_record", judge)
source = ringmain.cuda.attach(bus)
calling = threading.Thread(target=record)
calling.start()
assert inside.wait(600)
detaching = threading.Thread(target=lambda: ended.append(source.detach()))
ended = []
detaching.start()
go_on.set()  # this thread gets the GIL, and so does the judge
detaching.join(); calling.join()
print(json.dumps(ended))
""")
    assert said == ["done"]


@played
def test_it_comes_and_goes_while_eight_threads_call_cuda():
    said = run(CALLS + """
stop, rounds = threading.Event(), [0] * 8
def work(n):
    event = ctypes.c_void_p()
    assert runtime.cudaEventCreate(ctypes.byref(event)) == 0
    while not stop.is_set():
        assert runtime.cudaEventRecord(event, None) == 0
        rounds[n] += 1
def all_go_on():
    seen = list(rounds)
    while any(now < was + 20 for now, was in zip(rounds, seen)):
        pass
workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for worker in workers:
    worker.start()
quiet = []
for _ in range(20):
    source = ringmain.cuda.attach(bus)
    all_go_on()
    assert source.detach() == "done"
    counts = source.counts()
    assert bus.flush(600)
    quiet.append(len(heard))
    all_go_on()
    assert bus.flush(600) and source.counts() == counts
    quiet.append(len(heard))
stop.set()
for worker in workers:
    worker.join()
print(json.dumps([quiet, len({e["thread"] for channel, e in heard if channel == "cuda.event_record"})]))
""")
    after_detach, later = said[0][::2], said[0][1::2]
    assert after_detach == later and after_detach == sorted(set(after_detach)) and said[1] == 8
