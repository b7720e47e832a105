"""NCCL's source from Python: over a caller that opens the plugin and tells it of operations as NCCL does."""

import os
import re
from pathlib import Path

import pytest
import ringmain
from over_front_end import PROGRAM, played, run

nccl = pytest.importorskip("ringmain.nccl", reason="this build has no source of NCCL's events")


@pytest.mark.parametrize("options, words", [
    ({"lane_events": 5}, "^lane_events is 5; give a whole number from 64 to 1048576$"),
    ({"stall_seconds": 0}, "^stall_seconds is 0; give a whole number from 1 to 86400$"),
    ({"kernel_channels": "sometimes"}, "^kernel_channels is 'sometimes'; give one of when_heard, always, never$"),
    ({"door": "open"}, "^door is 'open'; give one of operations, steps, all, never$")])
def test_options_that_cannot_be_are_refused(bus, options, words):
    with pytest.raises(ValueError, match=words):
        nccl.attach(bus, **options)


@pytest.mark.parametrize("options", [{"proxy_steps": 1}, {"lane_events": "many"}, {"stall_seconds": "soon"}, {"bus": "mine"}, {"name_plugin": "yes"}])
def test_what_is_of_another_type_is_refused(bus, options):
    with pytest.raises(TypeError, match="give"):
        nccl.attach(**{"bus": bus, **options})


def test_its_limits_are_the_librarys():
    """With a number beyond them the library says its own."""
    bus = ringmain.Bus.process()
    for word, (least, most) in (("lane", nccl._LANE_EVENTS), ("stall", nccl._STALL_SECONDS)):
        for beyond in (least - 1, most + 1):
            with pytest.raises(ValueError, match=f"{least}.*{most}"):
                nccl._library.attach(bus._native, f"{word}={beyond}")


def test_its_counts_are_the_librarys():
    header = Path(__file__).resolve().parents[4] / "events/nccl_source.hpp"
    [written] = re.findall(r"^struct Counts {(.*?)^}", header.read_text(encoding="utf-8"), re.M | re.S)
    assert tuple(re.findall(r"std::uint64_t (\w+) =", written)) == nccl._nccl_library.COUNTS == nccl.Counts._fields


def test_a_source_is_made_by_attach_alone():
    with pytest.raises(TypeError, match=r"made by ringmain\.nccl\.attach"):
        nccl.Source()


def test_a_copy_without_the_library_says_so_at_the_import():
    program = ("import ringmain._native as n; n.nccl_library = 'libringmain_of_nobody.so'\n"
               "try: import ringmain.nccl\n"
               "except ImportError as error: import json; print(json.dumps(str(error)))")
    assert run(program) == ("this copy of ringmain has no libringmain_of_nobody.so, which NCCL's source is; install ringmain "
                            "again")


def test_without_a_source_nothing_stands():
    assert nccl.tell_stalled() == 0
    assert Path(nccl.plugin()).exists()


@played
def test_what_nccl_tells_is_heard_and_nothing_after_detach():
    said = run(PROGRAM + """
hear("nccl.*"), hear("collective.completed")
with nccl.attach(bus, kernel_channels="always") as source:
    assert front.played_open() == 0
    for i in range(3): front.played_collective(1)
    before = len(told("nccl.operation"))
front.played_collective(1)
after = len(told("nccl.operation"))
front.played_close()
states = [e["state"] for e in told("nccl.plugin")]
counts = source.counts()
print(json.dumps([before, after, states, [e["kind"] for e in told("nccl.evidence")], len(told("collective.completed")),
                  counts.started == counts.stopped + counts.stale + counts.aborted, source.detach(), repr(source)]))
""")
    assert said[:5] == [3, 3, ["attached", "opened", "detached"], ["kernel_channels"] * 3, 3]
    assert said[5:] == [True, "was_not_attached", "<NCCL's source on <bus 'of a test'>>"], said


@played
def test_who_waits_is_told_when_asked():
    said = run(PROGRAM + """
hear("nccl.stalled"), hear("nccl.kernel_channel")
source = nccl.attach(bus, kernel_channels="always")
assert front.played_open() == 0
front.played_collective(1)
front.played_collective(0)      # its kernel never comes
under_way, in_process = source.tell_stalled(), nccl.tell_stalled()
stalled = told("nccl.stalled")
front.played_close()
source.detach()
print(json.dumps([under_way, in_process, [(e["asked"], e["func"], e["group"], e["reading"]) for e in stalled], nccl.tell_stalled()]))
""")
    assert said == [1, 1, [[True, "AllReduce", "0:default_pg", "not_begun"]] * 2, 0]


@played
@pytest.mark.parametrize("before", [None, "/nowhere/theirs.so"])
def test_nccl_is_told_which_plugin_to_load_and_another_comes_behind(before):
    said = run(PROGRAM + """
source = nccl.attach(bus)
first = [os.environ.get(name) for name in ("NCCL_PROFILER_PLUGIN", "RINGMAIN_NCCL_CHAIN")]
source.detach()
again = nccl.attach(bus)        # it is there by then, and not put behind itself
print(json.dumps([first == [os.environ.get(name) for name in ("NCCL_PROFILER_PLUGIN", "RINGMAIN_NCCL_CHAIN")],
                  first[0] == nccl.plugin(), first[1]]))
""", **({} if before is None else {"NCCL_PROFILER_PLUGIN": before}))
    assert said == [True, True, before]


@played
def test_the_variable_is_left_alone_where_that_is_asked_for_or_attach_is_refused():
    said = run(PROGRAM + """
source = nccl.attach(bus, name_plugin=False)
one = os.environ.get("NCCL_PROFILER_PLUGIN")
try: nccl.attach(bus)
except RuntimeError as why: refused = str(why)
print(json.dumps([one, os.environ.get("NCCL_PROFILER_PLUGIN"), "already" in refused]))
""")
    assert said == [None, None, True]


@played
def test_a_source_that_nobody_holds_is_detached():
    said = run(PROGRAM + """
import gc
hear("nccl.plugin")
source = nccl.attach(bus)
del source
gc.collect()
again = nccl.attach(bus)
print(json.dumps([e["state"] for e in told("nccl.plugin")]))
""")
    assert said == ["attached", "detached", "attached"]


@played
def test_detach_waits_without_the_gil_for_a_subscriber_that_needs_it():
    said = run(PROGRAM + """
inside, go_on, ended = threading.Event(), threading.Event(), []
def judge(event):
    inside.set()
    assert go_on.wait(600)
bus.subscribe_inline("nccl.operation", judge)
source = nccl.attach(bus)
assert front.played_open() == 0
telling = threading.Thread(target=lambda: front.played_collective(0))
telling.start()
assert inside.wait(600)
ending = threading.Thread(target=lambda: ended.append(source.detach()))
ending.start()
go_on.set()
ending.join(), telling.join()
print(json.dumps(ended))
""")
    assert said == ["done"]


@played
def test_what_the_page_shows_runs_as_it_stands():
    page = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[4])) / "docs/python.md"
    [shown] = [text for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S) if "ringmain.nccl" in text]
    said = run(PROGRAM + """
printed = []
def train():
    assert front.played_open() == 0
    front.played_collective(0)
space = {"train": train, "print": lambda *words: printed.append(words)}
exec(sys.argv[1], space)
assert space["bus"].flush(600)
print(json.dumps([printed, space["stands"].raised]))
""", shown)
    assert said[1] == 0 and len(said[0]) == 2
    assert sorted(said[0], key=str) == sorted([["0:default_pg", "AllReduce", "not_begun", -1], [1, "operations are under way"]], key=str)
