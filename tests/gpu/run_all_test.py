#!/usr/bin/env python3
"""Do run_all.sh and pack keep what they promise, where there is no GPU? usage: run_all_test.py TESTCASE, with the build in $GPU_BUILD"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import machine
import run_tests
from cases import main

BUILD = Path(os.environ["GPU_BUILD"])
MIB = 1 << 20


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = Path(folder.name)

    def run_it(self, *words, status=0, says="", **variables):
        run = subprocess.run(["bash", str(HERE / "run_all.sh"), "--build", str(BUILD), "--output", str(self.output), *words],
                             capture_output=True, text=True, check=False, env={**os.environ, **variables})
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        self.assertIn(says, run.stderr)
        return run.stdout.splitlines()

    def results(self):
        return json.loads((self.output / "results.json").read_text())


class WithoutTest(InAFolder):
    def setUp(self):
        super().setUp()
        if machine.probe(dict(os.environ))["gpu"]:
            self.skipTest("there is a GPU")

    def test_every_test_is_skipped_with_the_reason(self):
        *lines, last = self.run_it()
        self.assertEqual([line.split()[0] for line in lines], list(run_tests.TESTS))
        for line in lines:
            self.assertRegex(line, r"^[GCN]\d+[bc]? SKIP there is no NVIDIA driver|^[GCN]\d+[bc]? SKIP the driver ")
        self.assertEqual(last, f"0 passed, 0 failed, {len(lines)} skipped")
        results = self.results()
        self.assertIsNone(results["machine"]["gpu"])
        self.assertEqual({one["verdict"] for one in results["tests"]}, {"SKIP"})

    def test_each_group_says_that_it_was_skipped(self):
        for group in run_tests.GROUPS:
            names = [name for name, (of, _, _) in run_tests.TESTS.items() if str(of) == group]
            *lines, last = self.run_it("--group", group)
            self.assertEqual([line.split()[:2] for line in lines], [[name, "SKIP"] for name in names])
            self.assertEqual(last, f"0 passed, 0 failed, {len(names)} skipped")
            self.assertEqual([one["id"] for one in self.results()["tests"]], names)

    def test_an_output_folder_that_cannot_be_written_is_said_before_anything_is_run(self):
        self.output /= "file"
        self.output.touch()
        self.assertEqual(self.run_it(status=2, says="name another folder with --output"), [])

    def test_groups_hold_all_tests_once(self):
        groups = [[line.split()[0] for line in self.run_it("--group", group, "--list")] for group in run_tests.GROUPS]
        self.assertEqual(run_tests.GROUPS, ("1", "2", "3", "collectives", "completions", "nccl"))
        self.assertEqual(sorted(sum(groups, [])), sorted(run_tests.TESTS))

    def test_ctest_is_told_that_all_was_skipped(self):
        lines = self.run_it("--ctest", "--group", "2", status=77)
        self.assertTrue(lines[-2].startswith("skipped: "), lines)


class PromisesTest(InAFolder):
    def test_no_group_may_take_more_than_eight_minutes(self):
        for group in run_tests.GROUPS:
            seconds = sum(limit for of, limit, _ in run_tests.TESTS.values() if str(of) == group)
            self.assertLessEqual(seconds, run_tests.GROUP_SECONDS_MAX, group)

    def test_wrong_words_are_answered(self):
        self.run_it("--grope", status=2)
        self.run_it("--group", "4", status=2)
        self.run_it("--build", status=2)
        self.run_it("--python", "/nowhere/python3", status=2, says="--python names no program")

    def test_help_names_every_option(self):
        text = "\n".join(self.run_it("--help"))
        for option in ("--group", "--only", "--output", "--build", "--python", "--no-build", "--fakes", "--ctest", "--list"):
            self.assertIn(option, text)


class OverStandInsTest(InAFolder):
    def setUp(self):
        super().setUp()
        if not (BUILD / "bin/gpu-fakes/runtime_calls").exists():
            self.skipTest("CUDA's headers are not here, so the programs were not built")

    def fakes(self, *words, **more):
        return self.run_it("--no-build", "--fakes", *words, **more)

    def test_what_can_be_run_over_them_passes(self):
        *lines, last = self.fakes()
        verdicts = {line.split()[0]: line.split()[1] for line in lines if not line.startswith("#")}
        for name in ("G0", "G1", "G1b", "G1c", "G2", "G3", "G6", "G7", "G8", "G8b", "G8c", "G9", "G11", "G12", "G13", "G15"):
            self.assertEqual(verdicts[name], "PASS", "\n".join(lines))
        self.assertRegex(last, r"^\d+ passed, 0 failed, \d+ skipped$")
        self.assertTrue((self.output / "runtime_calls.calls").exists())
        self.assertLess((self.output / "results.json").stat().st_size, 16 * MIB)
        self.assertTrue(any(line.startswith("# G6 correlation ids: ") for line in lines), lines)

    def test_one_that_hangs_or_dies_fails_and_the_others_go_on(self):
        *lines, last = self.fakes("--group", "1", GPU_TEST_SECONDS="0.01", status=1)
        judged = [line for line in lines if not line.startswith("#")]
        self.assertTrue(all(re.match(r"G\d+[bc]? FAIL it hung: nothing after 0.01 s$", line) for line in judged), lines)
        self.assertEqual(last, f"0 passed, {len(judged)} failed, 0 skipped")

    def test_a_program_that_dies_is_a_failure_with_its_reason(self):
        broken = self.output / "build"
        (broken / "bin/gpu-fakes").mkdir(parents=True)
        (broken / "tests").symlink_to(BUILD / "tests")
        dying = broken / "bin/gpu-fakes/attach_cycles"
        dying.write_text("#!/bin/sh\nkill -SEGV $$\n")
        dying.chmod(0o755)
        lines = self.run_it("--build", str(broken), "--no-build", "--fakes", "--only", "G13", status=1)
        self.assertRegex(lines[0], "^G13 FAIL attach_cycles .* ended with -11")

    def waiting_program(self, path):
        """At `path`, a program that says when it has begun and then waits. Told to go on, it says so, if it still lives."""
        begun, left = self.output / "begun", self.output / "left"
        for fifo in (begun, left):
            os.mkfifo(fifo)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nexec 3>{left}\necho >{begun}\nread go_on <{begun}\necho lives >&3\n")
        path.chmod(0o755)
        return begun, left

    def end_it(self, begun, left, *words, **variables):
        """Ended while that program waits, run_all.sh ends it, too. Returns the exit status and what was said."""
        with subprocess.Popen(["bash", str(HERE / "run_all.sh"), "--output", str(self.output / "results"), "--fakes", "--group", "3", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables}) as run:
            with left.open() as until_it_is_gone:
                begun.read_text()
                run.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):  # it is to fail, and not to hang, where nobody ends the program
                    run.wait(60)
                with begun.open("r+b", buffering=0) as go_on:
                    go_on.write(b"\n")
                    self.assertEqual(until_it_is_gone.read(), "")
            return run.wait(), run.stderr.read()

    def test_ended_in_the_middle_of_a_test_it_leaves_whole_results_and_no_process(self):
        build = self.output / "build"
        fifos = self.waiting_program(build / "bin/gpu-fakes/attach_cycles")
        (build / "tests").symlink_to(BUILD / "tests")
        self.assertEqual(self.end_it(*fifos, "--no-build", "--build", str(build)), (128 + signal.SIGTERM, "run_all.sh: ended by SIGTERM\n"))
        results = json.loads((self.output / "results/results.json").read_text())
        self.assertEqual(sorted(path.name for path in (self.output / "results").iterdir()), ["results.json"])
        self.assertNotIn("G13", [one["id"] for one in results["tests"]])


class PackTest(InAFolder):
    def test_it_holds_the_tree_what_the_build_needs_and_licences(self):
        root = HERE.parents[1]
        if subprocess.run(["git", "-C", str(root), "rev-parse"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this is no checkout of git's, so nobody knows which files are the project's")
        archive = self.output / "bundle.tar.gz"
        run = subprocess.run([str(HERE / "pack"), "--output", str(archive)], capture_output=True, text=True, check=False)
        if "is not installed here" in run.stderr:
            self.skipTest(run.stderr.strip())
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"bundle.tar.gz: \d+\.\d MiB, with libconcurrentqueue-dev")
        self.assertLess(archive.stat().st_size, 64 * MIB)
        with tarfile.open(archive) as bundle:
            names = set(bundle.getnames())
        for name in ("tests/gpu/run_all.sh", "CMakeLists.txt", "LICENSE", "third_party/usr/include/concurrentqueue/concurrentqueue.h",
                     "third_party/usr/include/CLI/CLI.hpp", "third_party/usr/include/simdjson.h", "third_party/usr/include/gtest/gtest.h",
                     "third_party/usr/share/doc/libconcurrentqueue-dev/copyright", "third_party/usr/share/doc/libsimdjson-dev/copyright"):
            self.assertIn(f"ringmain/{name}", names)
        for name in ("tests_of_collectives.py", "tests_of_nccl.py", "nccl_rows.py", "programs/nccl_calls.cpp", "scripts/nccl_group.py"):
            self.assertIn(f"ringmain/tests/gpu/{name}", names)
        if "without nanobind" not in run.stdout:
            for name in ("__main__.py", "cmake/nanobind-config.cmake", "include/nanobind/nanobind.h", "src/nb_combined.cpp"):
                self.assertIn(f"ringmain/third_party/python/nanobind/{name}", names)
            self.assertTrue([name for name in names if re.search(r"nanobind-.*dist-info/.*LICENSE", name)], "nanobind's licence")
        self.assertEqual([name for name in names if re.search(r"third_party.*(cuda|cupti|nvidia)", name.removeprefix("ringmain/third_party"))
                          and "simdjson" not in name], [])


if __name__ == "__main__":
    sys.exit(main())
