"""Completions of CUDA streams from Python: without a driver, and over a driver and runtime that are played."""

import threading
from types import SimpleNamespace

import pytest
import ringmain
from over_fakes import no_driver, played, run

cuda = pytest.importorskip("ringmain.cuda", reason="this build has no source of CUDA's calls")

PROGRAM = """
import ctypes, json, sys, threading
import ringmain, ringmain.cuda as cuda
runtime, driver = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1")
driver.fake_cuda_hold.argtypes, driver.fake_cuda_hold.restype = [ctypes.c_void_p], ctypes.c_uint64
driver.fake_cuda_finish.argtypes = [ctypes.c_uint64]
assert runtime.cudaFree(None) == 0
place = ctypes.c_void_p()
assert runtime.cudaStreamCreate(ctypes.byref(place)) == 0
stream = place.value
bus = ringmain.Bus("of a test")
heard = []
bus.subscribe("cuda.completion", lambda batch: heard.extend(e._asdict() for e in batch))
def told():
    assert bus.flush(600)
    return [(e["tag"], e["outcome"]) for e in heard]
def until(done):
    while not done(): pass
"""


@no_driver
def test_without_a_driver_one_sentence_says_so(bus):
    with pytest.raises(RuntimeError, match="libcuda") as refused:
        cuda.Completions(bus)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("options, words", [
    ({"strategy": "best"}, "^strategy is 'best'; give one of automatic, memory_writes, event_queries, host_functions$"),
    ({"lanes": 0}, "^lanes is 0; give a whole number from 1 to 65535$"), ({"lanes": 65536}, "lanes is 65536"),
    ({"lane_tickets": 1}, "from 2 to 1048576"), ({"capacity_events": 0}, "from 1 to"), ({"spin_us": -1}, "from 0 to"),
    ({"sleep_us_max": 0}, "from 1 to"), ({"watch_us": 0}, "from 1 to"), ({"end": float("nan")}, "no number")])
def test_numbers_that_cannot_be_are_refused_before_the_driver_is_looked_for(bus, options, words):
    with pytest.raises(ValueError, match=words):
        cuda.Completions(bus, **options)


@pytest.mark.parametrize("options", [{"bus": "mine"}, {"lanes": "many"}, {"end": "soon"}, {"end": True}])
def test_what_is_of_another_type_is_refused(bus, options):
    with pytest.raises(TypeError, match="give"):
        cuda.Completions(**{"bus": bus, **options})


def test_the_limits_are_the_librarys():
    """With a number beyond them the library says its own."""
    import ringmain._cuda_tickets_library as own
    good = (0, 1024, 256, 65536, 20, 500, 1000, 0)
    for at, beyond in ((1, 0), (1, 65536), (2, 1), (2, (1 << 20) + 1), (3, 0), (5, 0), (6, 0)):
        with pytest.raises(RuntimeError, match="must be|above 0"):
            own.load().make(ringmain.Bus.process()._native, good[:at] + (beyond,) + good[at + 1:])


def test_codes_and_strategies_are_the_librarys():
    """As the names of the event's enumerators, and of ArmCode, in their order."""
    import re
    from pathlib import Path

    import ringmain._cuda_tickets_library as own
    header = Path(__file__).resolve().parents[4] / "adapters/sources/cuda/completions.hpp"
    for name, names in (("Strategy", own.STRATEGIES), ("ArmCode", own.CODES)):
        [written] = re.findall(rf"^enum class {name} : .*?{{(.*?)^}};", header.read_text(encoding="utf-8"), re.M | re.S)
        plain = re.sub(r"//.*", "", written)
        assert tuple(re.findall(r"\w+", plain)) == names


@played
def test_a_ticket_ends_when_the_stream_got_there_and_not_before():
    said = run(PROGRAM + """
with cuda.Completions(bus) as completions:
    held = driver.fake_cuda_hold(stream)
    armed = completions.arm(stream, 7), completions.arm(stream, 8)
    waiting, before = told(), completions.figures().pending
    driver.fake_cuda_finish(held)
    until(lambda: completions.figures().completed == 2)
    after, figures = told(), completions.figures()
later, again = completions.arm(stream, 9), completions.end()
print(json.dumps([[bool(a) for a in armed], armed[0].ticket < armed[1].ticket, waiting, before, after, figures.strategy,
                  figures.armed, later.code, bool(later), again, completions.figures().arms["ended"], repr(completions)]))
""")
    assert said[:5] == [[True, True], True, [], 2, [[7, "completed"], [8, "completed"]]]
    assert said[5:11] == ["memory_writes", 2, "ended", False, "was_not_attached", 1]
    assert said[11] == "<completions on <bus 'of a test'>: 2 armed, 0 pending, by memory_writes>"


@played
@pytest.mark.parametrize("strategy", ["memory_writes", "event_queries", "host_functions"])
def test_each_strategy_completes_and_what_is_left_is_abandoned(strategy):
    said = run(PROGRAM + """
completions = cuda.Completions(bus, strategy=sys.argv[1])
assert completions.arm(stream, 1)
until(lambda: completions.figures().completed == 1)
held = driver.fake_cuda_hold(stream)
assert completions.arm(stream, 2)
ended = completions.end(0)
print(json.dumps([ended, told(), completions.figures().strategy]))
driver.fake_cuda_finish(held)
""", strategy)
    assert said == ["done", [[1, "completed"], [2, "abandoned"]], strategy]


@played
def test_an_error_of_the_gpu_fails_what_is_on_its_way_and_what_comes_is_lost():
    said = run(PROGRAM + """
completions = cuda.Completions(bus)
driver.fake_cuda_hold(stream)
assert completions.arm(stream, 1)
driver.fake_cuda_break(700)
until(lambda: completions.figures().failed == 1)
lost = completions.arm(stream, 2)
print(json.dumps([told(), heard[0]["result"], lost.code, lost.result, completions.figures().result, completions.end()]))
""")
    assert said[0] == [[1, "failed"]] and said[1:5] == [700, "lost", 700, 700] and said[5] == "done"


@played
def test_a_graph_is_launched_and_armed_behind_and_a_node_of_it_is_a_ticket_for_each_launch():
    said = run(PROGRAM + """
graph, ready, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuGraphCreate(ctypes.byref(graph), 0) == 0
with cuda.Completions(bus) as completions:
    node = completions.add_host_node(graph.value, tag=5)
    assert node > 0
    assert driver.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0)) == 0
    armed = completions.arm_after_launch(ready.value, stream, 6)
    until(lambda: completions.figures().completed == 2)
    wrong = completions.arm_after_launch(12345, stream, 7)
print(json.dumps([armed.code, armed.launched, sorted(told()), wrong.code, wrong.launched]))
""")
    assert said[:3] == ["armed", True, [[5, "completed"], [6, "completed"]]] and said[4] is False, said


@played
def test_nobody_holds_it_and_the_process_ends_and_each_ticket_has_its_end():
    said = run(PROGRAM + """
import gc
completions = cuda.Completions(bus, end=0)
driver.fake_cuda_hold(stream)
assert completions.arm(stream, 1)
del completions
gc.collect()
first = told()
kept = cuda.Completions(bus, end=0)
assert kept.arm(stream, 2)
print(json.dumps(first))
""")
    assert said == [[1, "abandoned"]]


@played
def test_end_waits_without_the_gil_for_a_subscriber_that_needs_it():
    said = run(PROGRAM + """
inside, go_on, ended = threading.Event(), threading.Event(), []
def judge(event):
    inside.set()
    assert go_on.wait(600)
bus.subscribe_inline("cuda.completion", judge)
completions = cuda.Completions(bus)
assert completions.arm(stream, 1)
assert inside.wait(600)
ending = threading.Thread(target=lambda: ended.append(completions.end(None)))
ending.start()
go_on.set()
ending.join()
print(json.dumps([ended, told()]))
""")
    assert said == [["done"], [[1, "completed"]]]


@played
def test_only_what_is_wrapped_is_heard_where_that_is_asked_for():
    said = run(PROGRAM + """
with cuda.attach(bus, wrapped_only=True) as source:
    bus.subscribe("cuda.*", lambda batch: None)
    assert runtime.cudaStreamCreate(ctypes.byref(place)) == 0
    print(json.dumps([source.state, source.counts().published]))
""")
    assert said == ["attached", 0]


@played
def test_what_the_page_shows_runs_as_it_stands():
    import os
    import re
    from pathlib import Path
    page = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[4])) / "docs/python.md"
    [shown] = [text for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
               if "ringmain.cuda.Completions" in text]
    said = run(PROGRAM + """
printed = []
space = {"train": lambda: None, "stream": stream, "print": lambda *words: printed.append(words[:2])}
exec(sys.argv[1], space)
assert space["bus"].flush(600)
print(json.dumps([printed, space["there"].raised]))
""", shown)
    assert said == [[[step, "completed"] for step in range(3)], 0]


class Handles:
    """Whatever has a stream."""

    @staticmethod
    def of(stream):
        from ringmain._cuda_completions import _handle
        return _handle(stream)


def test_streams_of_other_packages_are_taken_by_what_they_have():
    assert Handles.of(SimpleNamespace(cuda_stream=17)) == 17  # PyTorch
    assert Handles.of(SimpleNamespace(ptr=18)) == 18  # CuPy
    assert Handles.of(SimpleNamespace(__cuda_stream__=lambda: (0, 19))) == 19
    assert Handles.of(20) == 20
    for wrong in (None, True, "stream", 1.5, threading):
        with pytest.raises(TypeError, match="give a CUDA stream, or its handle as an int"):
            Handles.of(wrong)
