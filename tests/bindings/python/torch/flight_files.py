"""What tests of flight recorders share: recorders of simulated ranks, PyTorch's analyzer, and `ringmain fr`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
from ringmain import comms

PROGRAM = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "bin" / "ringmain"
CULPRIT = 2

# A process of its own: what it finds it says through logging, once for each.
FR_TRACE = """
import sys
from torch.distributed.flight_recorder import fr_trace
fr_trace.main([sys.argv[1], "-p", "rank_"])
"""


def zeros(*sizes, dtype="float32"):
    return numpy.zeros(sizes, dtype)


def recorded(size, program):
    """What each rank's recorder holds after program(comm, recorder)."""
    def rank():
        comm = comms.new_comm("loopback", name="main")
        recorder = comms.FlightRecorderHook(100, isolated=True, rank=comm.get_rank())
        recorder.register_with_comm(comm)
        made = program(comm, recorder)
        return made if made is not None else recorder
    return comms.run_ranks(size, rank)


def pickles(folder, recorders):
    for rank, made in enumerate(recorders):
        (folder / f"rank_{rank}").write_bytes(made if isinstance(made, bytes) else made.dump_pickle())


def fr_trace(folder):
    """What PyTorch's analyzer says of it."""
    ran = subprocess.run([sys.executable, "-c", FR_TRACE, folder], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stderr


def quiet(said):
    """It also says that it has no tabulate, and how long it took."""
    return not any(word in said.lower() for word in ("mismatch", "not all ranks", "culprit", "error", "coalesced end", "cannot decide", "no errors"))


def merge(folder, out, prefix="rank_"):
    ran = subprocess.run([PROGRAM, "fr", "merge", "--grace", "0", "--prefix", prefix, folder, "-o", out / "rank_"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def judged(folder, *more):
    ran = subprocess.run([PROGRAM, "fr", "analyze", "--json", "--grace", "0", *more, folder], capture_output=True, text=True, check=False)
    return json.loads(ran.stdout), ran.returncode


def analyze(folder, *more):
    return judged(folder, *more, "--prefix", "rank_")
