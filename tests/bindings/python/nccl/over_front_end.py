"""Programs in a process of its own each, over a caller that is as NCCL is to its profiler plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("RINGMAIN_BUILD", "."))
FRONT_END = BUILD / "tests/adapters/nccl/libplayed_front_end.so"
played = pytest.mark.skipif(not FRONT_END.exists(), reason=f"there is no {FRONT_END}: the front end was not built")

# `collective(kernel)` tells of one, `open()` and `close()` of its communicator, which is where NCCL looks at the variable.
PROGRAM = """
import ctypes, json, os, sys, threading
import ringmain, ringmain.nccl as nccl
front = ctypes.CDLL(os.environ["PLAYED_FRONT_END"])
bus = ringmain.Bus("of a test")
heard = []
def hear(channels):
    return bus.subscribe(channels, lambda batch: heard.extend((batch.channel, e._asdict()) for e in batch))
def told(channel):
    assert bus.flush(600)
    return [event for name, event in heard if name == channel]
"""


def run(program, *words, **variables):
    """What the program prints as JSON."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RINGMAIN_NCCL"))}
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False,
                          env={**kept, "PLAYED_FRONT_END": str(FRONT_END), **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
