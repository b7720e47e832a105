"""What PyTorch's analyzer, and ours, say of the dumps in a folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "bin" / "ringmain"

# A process of its own: what it finds it says through logging, once for each.
FR_TRACE = """
import sys
from torch.distributed.flight_recorder import fr_trace
fr_trace.main([sys.argv[1], "-p", "rank_"])
"""


def fr_trace(folder):
    """What PyTorch's analyzer says of it."""
    ran = subprocess.run([sys.executable, "-c", FR_TRACE, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stderr


def analyze(folder, *more):
    ran = subprocess.run([PROGRAM, "fr", "analyze", "--json", "--grace", "0", *more, "--prefix", "rank_", folder], capture_output=True, text=True,
                         check=False)
    return json.loads(ran.stdout), ran.returncode
