"""Programs over a driver, runtime and CUPTI that are played, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("RINGMAIN_BUILD", "."))
FAKES = BUILD / "tests/adapters/cuda/fakes/lib"
no_driver = pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a driver here")
played = pytest.mark.skipif(not (FAKES / "libcuda.so.1").exists(), reason=f"there is no {FAKES}: the fakes were not built")


def run(program, *words, **variables):
    """What the program prints as JSON, in a process of its own: a process has one source, and keeps the driver it found."""
    folders = os.pathsep.join(filter(None, [str(FAKES), os.environ.get("LD_LIBRARY_PATH")]))
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": folders, **variables})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
