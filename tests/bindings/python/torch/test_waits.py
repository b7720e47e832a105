"""PyTorch's wait counters on the process's bus: heard, or said to have come too late."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "lib/ringmain/libringmain_wait_counter.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"there is no {LIBRARY}: it was not built")

PROGRAM = """
import json, sys, torch, ringmain, ringmain.torch
from torch._C._monitor import _WaitCounter
if "late" in sys.argv:
    _WaitCounter("somebody.elses")
bus = ringmain.Bus.process() if "own" not in sys.argv else ringmain.Bus("own")
waits = []
bus.subscribe("compile.wait", lambda batch: waits.extend((e.key, e.edge, e.id) for e in batch))
attachment = ringmain.torch.attach(bus)
with _WaitCounter("ringmain.test").guard():
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
bus.flush(60)
report = attachment.report()["wait counters"]
print(json.dumps({"live": report.live, "why_not": report.why_not, "waits": waits}))
attachment.detach()
"""


def run(*words):
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_waits_are_heard_begin_and_end_on_the_processs_bus():
    said = run()
    assert said["live"], said["why_not"]
    keys = {key for key, _, _ in said["waits"]}
    assert "ringmain.test" in {key.removeprefix("pytorch.wait_counter.") for key in keys}
    assert any("dynamo_compile" in key for key in keys)
    begun = {number for _, edge, number in said["waits"] if edge == "begin"}
    assert begun == {number for _, edge, number in said["waits"] if edge == "end"}


def test_behind_the_first_counter_it_says_that_it_came_too_late():
    said = run("late")
    assert not said["live"] and said["waits"] == []
    assert "too late" in said["why_not"]


def test_another_bus_than_the_processs_is_told_why_not():
    said = run("own")
    assert not said["live"] and "Bus.process()" in said["why_not"]
