#!/usr/bin/env python3
"""Does PyTorch's own analyzer find in what `ringmain fr merge` writes what `ringmain fr analyze` finds, and nothing in healthy jobs?

usage: fr_trace_test.py      RINGMAIN_BINARY is the program, RINGMAIN_TORCH_PYTHON a Python that has PyTorch ("" for none)
"""

import json
import os
import pickle
import subprocess
import sys
import unittest
from pathlib import Path

from fr_test import FrTest, fr, with_faults

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "adapters" / "flight"))
import simulated_job  # noqa: E402

TORCH_PYTHON = os.environ.get("RINGMAIN_TORCH_PYTHON", "")

# Runs PyTorch's analyzer on each folder; what it says of one stands between two lines of ours.
ALL_TRACES = """
import sys
from torch.distributed.flight_recorder import fr_trace
for folder in sys.argv[1:]:
    print("FOLDER", folder, file=sys.stderr, flush=True)
    fr_trace.main([folder, "-p", "fr_"])
"""

# Three ranks of gloo. Dumped when all is done, and again while all but rank 1 wait in a further operation.
GLOO = """
import os, sys, datetime, torch, torch.distributed as dist, torch._C._distributed_c10d as c
folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=3,
                        timeout=datetime.timedelta(seconds=600))
store = dist.distributed_c10d._get_default_store()

def meet(name):
    store.add(name, 1)
    while store.add(name, 0) < 3:
        pass

def as_bytes(made):
    return made if isinstance(made, bytes) else made.encode()

def dump(case):
    for form, made in (("pickle", c._dump_fr_trace()), ("json", c._dump_fr_trace_json())):
        with open(f"{folder}/{case}/{form}_{rank}", "wb") as file:
            file.write(as_bytes(made))

for i in range(4):
    dist.all_reduce(torch.ones(3, 4))
dist.all_gather([torch.ones(2) for _ in range(3)], torch.ones(2))
dist.barrier()
while b'"retired":false' in as_bytes(c._dump_fr_trace_json()):  # another thread sets it
    pass
meet("done")
dump("whole")
work = None if rank == 1 else dist.all_reduce(torch.ones(8), async_op=True)
meet("issued")
dump("skips")
meet("dumped")
os._exit(0)
"""


class TraceTest(FrTest):
    """PyTorch's own recorder and analyzer, each started once."""

    def fr_trace(self, folders):
        ran = subprocess.run([TORCH_PYTHON, "-c", ALL_TRACES, *map(str, folders)], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
        parts = [part.split("\n", 1) for part in ran.stderr.split("FOLDER ")[1:]]
        return {folder.strip(): said for folder, said in parts}

    def merge(self, name, grace=5):
        ran = fr("merge", "--grace", grace, "--prefix", "pickle_", self.path / name, "-o", self.path / name / "out" / "fr_")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return str(self.path / name / "out")

    def planted(self):
        expected = {}
        for name, job, theirs, ours, culprit in with_faults():
            (self.path / name).mkdir()
            self.write(job, f"{name}/pickle_{{}}")
            expected[self.merge(name)] = (theirs, ours, culprit)
        return expected

    def simulated(self, name, moments, ring=10_000, fault=None):
        """Sends and receives, batches of them and of collectives are in it; files have the times of their dumps."""
        job = simulated_job.Job(5, fault, ranks=4, rounds=30, batches=True)
        (self.path / name).mkdir()
        at = moments(job.last_moment())
        self.write(list(job.dumps(at, ring=ring).values()), f"{name}/pickle_{{}}")
        for rank, now in enumerate(at):
            os.utime(self.path / name / f"pickle_{rank}", ns=(now + job.clock[rank],) * 2)
        return self.merge(name)

    def healthy(self):
        """At the end, with rings that have wrapped, and in full swing at several moments."""
        second = simulated_job.SECOND
        return [self.simulated("whole_job", lambda end: [end + 600 * second] * 4), self.simulated("wrapped", lambda end: [end + 600 * second] * 4, 60),
                self.simulated("running", lambda end: [end - rank * second // 5 for rank in range(4)]),
                self.simulated("running_wrapped", lambda end: [end - rank * second // 5 for rank in range(4)], 60)]

    def gloo(self):
        for case in ("whole", "skips"):
            (self.path / case).mkdir()
        ranks = [subprocess.Popen([TORCH_PYTHON, "-c", GLOO, str(self.path), str(rank)],
                                  env={**os.environ, "TORCH_FR_BUFFER_SIZE": "100"}) for rank in range(3)]
        self.assertEqual([rank.wait() for rank in ranks], [0, 0, 0])
        for case, status, culprits in (("whole", 0, []), ("skips", 1, [1])):
            for form in ("pickle_", "json_"):
                told = fr("analyze", "--json", "--grace", "0", "--prefix", form, self.path / case)
                self.assertEqual(told.returncode, status, told.stdout + told.stderr)
                self.assertEqual(json.loads(told.stdout)["culprits"], culprits, told.stdout)
        one = self.path / "skips" / "pickle_0"
        self.assertEqual(fr("convert", one, "-o", self.path / "made.json").returncode, 0)
        self.assertEqual(fr("convert", self.path / "made.json", "-o", self.path / "again").returncode, 0)
        self.assertEqual(pickle.loads((self.path / "again").read_bytes()), pickle.loads(one.read_bytes()))
        return self.merge("whole"), self.merge("skips", 0)

    def test_its_verdicts_on_what_merge_writes_are_ours(self):
        expected = self.planted()
        healthy = self.healthy()
        lost = [self.simulated(kind, lambda end: [end + 600 * simulated_job.SECOND] * 4, fault=kind) for kind in ("lost_receive", "lost_batch")]
        whole, skips = self.gloo()
        healthy.append(whole)
        said = self.fr_trace([*expected, *healthy, *lost, skips])
        for folder, (theirs, ours, culprit) in expected.items():
            with self.subTest(folder):
                self.assertIn(theirs, said[folder])
                told = json.loads(fr("analyze", "--json", folder).stdout)
                self.assertEqual(([f["kind"] for f in told["findings"]], told["culprits"]), ([ours], [culprit]))
        for folder in healthy:
            with self.subTest(folder):
                for word in ("Not all ranks", "Culprit", "MISMATCH", "coalesced end", "No errors found", "cannot decide"):
                    self.assertNotIn(word, said[folder])
                if folder != whole:  # names of NCCL's, which tells how an operation ended, hide that gloo does not
                    self.assertEqual(json.loads(fr("analyze", "--json", folder).stdout)["findings"], [])
        for folder in lost:
            with self.subTest(folder):
                culprit, = json.loads(fr("analyze", "--json", folder).stdout)["culprits"]
                self.assertIn(f"missing ranks: {{{culprit}}}", said[folder])
        self.assertIn("Not all ranks joining", said[skips])
        self.assertIn("missing ranks: {1}", said[skips])


def lacks_torch():
    finding = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    return not TORCH_PYTHON or subprocess.run([TORCH_PYTHON, "-c", finding], check=False).returncode != 0


if __name__ == "__main__":
    if lacks_torch():
        print("skipped: no Python with PyTorch")
        sys.exit(77)
    unittest.main()
