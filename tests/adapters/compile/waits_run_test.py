#!/usr/bin/env python3
"""Does `ringmain run --source torch_waits` hear the wait counters of programs in which nothing was changed?

usage: waits_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY, a host as c10 is one in $RINGMAIN_WAIT_HOST, and, for
the real one, a Python that has PyTorch: $RINGMAIN_TORCH_PYTHON, or the one that runs this
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BINARY = os.environ["RINGMAIN_BINARY"]
HOST = os.environ["RINGMAIN_WAIT_HOST"]
PYTHON = os.environ.get("RINGMAIN_TORCH_PYTHON", sys.executable)
SKIPPED = 77


class WaitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.lines = self.folder / "events.jsonl"

    def run_it(self, *command, source="torch_waits", **environment):
        run = subprocess.run([BINARY, "run", "--source", source, "--summary", "--sink", f"json_lines:{self.lines}", "--",
                              *command], capture_output=True, text=True, timeout=150, check=False,
                             env={**os.environ, **environment})
        self.assertEqual(run.returncode, 0, run.stderr + run.stdout)
        return run

    def waits(self):
        """(key, how often begun), after a look at whether all begins and ends belong together."""
        every = [json.loads(line) for line in self.lines.read_text().splitlines()]
        waits = [event for event in every if event["channel"] == "compile.wait"]
        begun = {event["id"]: event for event in waits if event["edge"] == "begin"}
        ended = {event["id"]: event for event in waits if event["edge"] == "end"}
        self.assertEqual(len(begun) + len(ended), len(waits))
        self.assertEqual(begun.keys(), ended.keys())
        for id_, event in ended.items():
            self.assertEqual(begun[id_]["key"], event["key"])
            self.assertGreaterEqual(event["took_ns"], 0)
        return collections.Counter(event["key"] for event in begun.values()), list(begun.values())


class HostTest(WaitsTest):
    def test_every_wait_of_an_unchanged_program_is_heard(self):
        run = self.run_it(HOST, "50")
        self.assertEqual(run.stdout, "heard\n")
        keys, begun = self.waits()
        self.assertEqual(keys, {"pytorch.wait_counter.dynamo_compile": 200, "pytorch.wait_counter.c10d.new_group": 200})
        self.assertEqual({event["what"] for event in begun}, {"compile", "process_group"})
        self.assertEqual(len({event["thread"] for event in begun}), 2)
        self.assertIn("800 events, 0 lost: compile.wait 800", run.stderr)

    def test_a_child_without_counters_maps_nothing_of_the_rest(self):
        run = self.run_it(HOST, "1", "grep -o 'libringmain[^/]*so' /proc/self/maps | sort -u")
        self.assertEqual(run.stdout.split(), ["heard", "libringmain_wait_counter.so"])

    def test_a_program_without_counters_is_left_alone(self):
        run = self.run_it(HOST, "0", "echo still here")
        self.assertEqual((run.stdout, run.stderr), ("still here\n", ""))
        self.assertFalse(self.lines.exists())

    def test_a_run_that_did_not_ask_hears_nothing(self):
        run = self.run_it(HOST, "3", source="heartbeat:100000",
                          LD_PRELOAD=str(Path(BINARY).resolve().parents[1] / "lib/ringmain/libringmain_wait_counter.so"))
        self.assertEqual(run.stdout, "not heard\n")
        self.assertNotIn("compile.wait", self.lines.read_text())

    def test_outside_of_a_run_the_library_does_nothing(self):
        preload = str(Path(BINARY).resolve().parents[1] / "lib/ringmain/libringmain_wait_counter.so")
        run = subprocess.run([HOST, "3"], capture_output=True, text=True, check=True,
                             env={**os.environ, "LD_PRELOAD": preload})
        self.assertEqual((run.stdout, run.stderr), ("not heard\n", ""))


PROGRAM = """
import torch
backend = "aot_eager"
first = torch.compile(lambda x: x.sin() + 1, backend=backend)
second = torch.compile(lambda x: x.cos() * 2, backend=backend)
for function in (first, second, first):
    function(torch.ones(3))
x = torch.ones(3, requires_grad=True)
second(x).sum().backward()
metrics = torch._dynamo.utils.get_compilation_metrics()
print(sum(bool(one.is_forward) for one in metrics), sum(not one.is_forward for one in metrics))
"""


def has_torch():
    return subprocess.run([PYTHON, "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"],
                          check=False).returncode == 0


@unittest.skipIf(not has_torch(), f"{PYTHON} has no PyTorch; name one that has by RINGMAIN_TORCH_PYTHON")
class TorchTest(WaitsTest):
    def test_the_compiles_of_pytorch_are_heard(self):
        run = self.run_it(PYTHON, "-c", PROGRAM, TORCHINDUCTOR_CACHE_DIR=str(self.folder / "cache"))
        keys, begun = self.waits()
        forward, backward = map(int, run.stdout.split())  # as PyTorch counts itself
        self.assertEqual((forward, backward), (3, 1))
        for key, count in (("entire_forward_compile", forward), ("entire_backward_compile", backward),
                           ("dynamo_compile", forward + backward)):
            self.assertEqual(keys["pytorch.wait_counter." + key], count, keys)
        self.assertEqual({event["what"] for event in begun if "_compile" in event["key"]}, {"compile"})

    def test_a_second_opening_in_time_is_enough(self):
        program = """
import ctypes, sys
library = sys.argv[1]
import torch
ctypes.CDLL(library)                                          # local: PyTorch does not see it
waits = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)         # no counter exists yet
waits.ringmain_wait_counter_attach(None)
waits.ringmain_wait_counter_keys.restype = ctypes.c_uint64
before = waits.ringmain_wait_counter_keys()
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
print(before, waits.ringmain_wait_counter_keys() > 0)
"""
        library = Path(BINARY).resolve().parents[1] / "lib/ringmain/libringmain_wait_counter.so"
        run = subprocess.run([PYTHON, "-c", program, library], capture_output=True, text=True, check=False)
        self.assertEqual((run.stdout, run.returncode), ("0 True\n", 0), run.stderr)

    def test_who_comes_behind_the_first_counter_can_tell(self):
        program = """
import ctypes, sys
import torch
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
waits = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
waits.ringmain_wait_counter_keys.restype = ctypes.c_uint64
torch.compile(lambda x: x + 2, backend="eager")(torch.ones(3))
print(waits.ringmain_wait_counter_keys())
"""
        library = Path(BINARY).resolve().parents[1] / "lib/ringmain/libringmain_wait_counter.so"
        run = subprocess.run([PYTHON, "-c", program, library], capture_output=True, text=True, check=False)
        self.assertEqual((run.stdout, run.returncode), ("0\n", 0), run.stderr)


def main():
    result = unittest.main(argv=sys.argv, exit=False, verbosity=1).result
    if not result.wasSuccessful():
        return 1
    if result.skipped and result.testsRun == len(result.skipped):
        print("skipped:", "; ".join(reason for _, reason in result.skipped))
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
