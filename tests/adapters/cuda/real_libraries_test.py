#!/usr/bin/env python3
"""What comes of NVIDIA's own libraries where there is no driver, and of stand-ins beside them?

usage: real_libraries_test.py TESTCASE. The environment has NVIDIA's libraries (RINGMAIN_CUDA_HEADERS, by version), those that
stand in (RINGMAIN_FAKES), and the programs in the variables below.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from cases import main

ROOT = Path(os.environ.get("RINGMAIN_CUDA_HEADERS", "/nowhere"))
FAKES = Path(os.environ["RINGMAIN_FAKES"])
# Calls CUDA's runtime, which answers 35 without a driver, with CUPTI in its process; then ends in its own way.
CALLS = """
import ctypes, sys
cupti, runtime = ctypes.CDLL("libcupti.so.13"), ctypes.CDLL("libcudart.so.13")
print("cudaMalloc", runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(512)), flush=True)
sys.exit(3)
"""


class RealLibraries(unittest.TestCase):
    def setUp(self):
        self.cuptis = {file.parents[1].name: file for file in sorted(ROOT.glob("*/lib/libcupti.so.13"))}
        if not self.cuptis:
            self.skipTest("no libraries of NVIDIA's; ./dev test fetches them")
        if subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout.find("libcuda.so.1 ") >= 0:
            self.skipTest("there is a driver here")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def put(self, *libraries):
        """A folder with these and nothing else."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for library in libraries:
            (folder / library.name).symlink_to(library)
        return folder

    def run_it(self, *command, libraries):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "FAKE_", "LD_LIBRARY"))}
        return subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, "LD_LIBRARY_PATH": str(libraries)})


class RunTest(RealLibraries):
    """`ringmain run --source cuda`"""

    def heard(self, *command, libraries):
        lines = self.folder / "events.jsonl"
        lines.unlink(missing_ok=True)
        run = self.run_it(os.environ["RINGMAIN_BINARY"], "run", "--source", "cuda", "--sink", f"json_lines:{lines}", "--", *command,
                          libraries=libraries)
        return run, [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []

    def test_without_a_driver_a_sentence_says_so_and_a_program_does_what_it_does_alone(self):
        said = (r"\Aringmain: source cuda cannot attach: CUDA is not heard, as there is no NVIDIA driver here: install it, or let the "
                r"container have it \(libcuda\.so\.1: [^\n]*\); what it starts on a machine with a driver is heard there\n")
        runtime = ROOT / "13.0/lib/libcudart.so.13"
        for version, cupti in self.cuptis.items():
            with self.subTest(version):
                libraries = self.put(cupti, runtime)
                alone = self.run_it(sys.executable, "-c", CALLS, libraries=libraries)
                self.assertEqual((alone.returncode, alone.stdout), (3, "cudaMalloc 35\n"), alone.stderr)
                run, events = self.heard(sys.executable, "-c", CALLS, libraries=libraries)
                self.assertRegex(run.stderr, said)
                self.assertEqual((run.returncode, run.stdout, run.stderr.partition("\n")[2], events),
                                 (alone.returncode, alone.stdout, alone.stderr, []))

    def test_over_a_driver_that_cupti_cannot_use_the_program_runs_on_and_a_sentence_says_so(self):
        """The one that stands in has none of what CUPTI asks of it. 13.2 dies of that in its first call."""
        for version, cupti in self.cuptis.items():
            if version == "13.2":
                continue
            with self.subTest(version):
                run, events = self.heard(os.environ["RINGMAIN_WAYS"], "returns", "2",
                                         libraries=self.put(cupti, FAKES / "libcuda.so.1", FAKES / "libcudart.so.13"))
                self.assertEqual((run.returncode, run.stdout), (0, "returns 0\n"), run.stderr)
                self.assertRegex(run.stderr, r"source cuda could not attach to .*\(999\); look whether nvidia-smi finds the driver[^\n]*\n$")
                self.assertEqual(run.stderr.count("\n"), 1)
                self.assertEqual([(event["channel"], event.get("state")) for event in events], [("cuda.source", "unavailable")])


class ContractTest(RealLibraries):
    """The contract of the stand-ins, asked where it cannot be answered."""

    def skipped(self, reason, *libraries):
        run = self.run_it(os.environ["RINGMAIN_CONTRACT"], libraries=self.put(*libraries))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("[       OK ]", run.stdout)
        self.assertIn(f"skipped: {reason}", run.stdout)

    def test_without_a_driver_it_is_skipped(self):
        for version in ("13.0", "13.5"):
            self.skipped("no GPU, CUDA's answer is 35", self.cuptis[version], ROOT / version / "lib/libcudart.so.13")

    def test_with_only_some_of_them_nvidias_it_is_skipped(self):
        for library in (*self.cuptis.values(), ROOT / "13.0/lib/libcudart.so.13"):
            self.skipped("of CUPTI and the runtime one is NVIDIA's and the other stands in", library)


class TracedTest(RealLibraries):
    """The wrapper's calls, each once, in a program that is linked with nothing of CUDA's."""

    OF_13_1 = {"533", "534", "543", "544"}  # execution contexts

    def answers(self, *arguments, libraries):
        run = self.run_it(os.environ["RINGMAIN_TRACED_ALONE"], *arguments, libraries=libraries)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        said = dict(line.split(": ") for line in run.stdout.splitlines())
        return ({call: answer for call, answer in said.items() if call.isdigit()},
                {phase.strip('"'): int(times) for phase, times in said.items() if not phase.isdigit()})

    def test_without_a_driver_each_call_answers_as_the_runtime_does_and_none_is_told_to_have_succeeded(self):
        for version, lacks in (("13.0", self.OF_13_1), ("13.5", set())):
            for how in ((), ("unheard",)):
                with self.subTest(version, how=how):
                    calls, phases = self.answers(*how, libraries=self.put(ROOT / version / "lib/libcudart.so.13"))
                    self.assertEqual(calls, {call: "36" if call in lacks else "35" for call in calls})
                    self.assertEqual(len(calls), 41)
                    # A release is told before it fails: one has something to release, the memory that was to be registered.
                    self.assertEqual((set(phases), phases.get("instant", 1)), (set() if how else {"begin", "failed", "instant"}, 1))

    def test_without_a_runtime_each_call_answers_that_there_is_none(self):
        nothing = self.put()
        for name in ("libcudart.so.13", "libcudart.so.12"):
            (nothing / name).touch()  # which the loader takes for no library, and looks no further
        for how in ((), ("unheard",)):
            calls, phases = self.answers(*how, libraries=nothing)
            self.assertEqual(set(calls.values()), {"35"})
            self.assertEqual(set(phases), set() if how else {"begin", "failed", "instant"})

    def test_the_runtime_is_found_by_the_loader(self):
        fakes = self.put(FAKES / "libcuda.so.1", FAKES / "libcudart.so.13")
        calls, phases = self.answers(libraries=fakes)
        self.assertEqual({call for call, answer in calls.items() if answer == "36"}, self.OF_13_1 | {"177", "275", "276", "390"})
        self.assertEqual((calls["20"], calls["135"]), ("0", "0"))
        self.assertGreater(phases["instant"], 20)
        self.assertGreater(phases["succeeded"], 20)


if __name__ == "__main__":
    sys.exit(main())
