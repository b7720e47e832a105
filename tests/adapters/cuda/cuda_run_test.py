#!/usr/bin/env python3
"""Does `ringmain run --source cuda` hear what an unchanged program asks of CUDA, call by call and field by field?

usage: cuda_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY, the libraries that stand in for NVIDIA's in $FAKES and
the test programs in the variables below
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
import served_calls
from cases import main

BINARY = os.environ["RINGMAIN_BINARY"]
FAKES = Path(os.environ["RINGMAIN_FAKES"])
TRAIN, PER_THREAD, EACH_CALL, WAYS, TOOL, STEPS = (
    os.environ[f"RINGMAIN_{name}"] for name in ("TRAIN", "TRAIN_PER_THREAD", "EACH_CALL", "WAYS", "TOOL", "STEPS"))


class CudaRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.lines, self.log = self.folder / "events.jsonl", self.folder / "served.jsonl"

    def variables(self, libraries=None, **more):
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("CUDA_", "FAKE_", "RINGMAIN_CUDA", "LD_LIBRARY", "TOOL_"))}
        return {**kept, "LD_LIBRARY_PATH": str(libraries or FAKES), "FAKE_CUDA_LOG": str(self.log), **more}

    def run_it(self, *command, source="cuda", options=("--summary",), status=0, libraries=None, **more):
        sources = [word for one in source.split() for word in ("--source", one)]
        run = subprocess.run([BINARY, "run", *sources, *options, "--sink", f"json_lines:{self.lines}", "--", *command],
                             capture_output=True, text=True, check=False, env=self.variables(libraries, **more))
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        return run

    def events(self, pattern="cuda."):
        every = [json.loads(line) for line in self.lines.read_text().splitlines()] if self.lines.exists() else []
        return [event for event in every if event["channel"].startswith(pattern)]

    def calls(self):
        """Of the kinds that served_calls knows."""
        return [event for event in self.events() if event["channel"] not in ("cuda.source", "cuda.context")]

    def notices(self, state):
        return [event for event in self.events("cuda.source") if event["state"] == state]

    def forget(self):
        for file in (self.lines, self.log):
            file.unlink(missing_ok=True)

    def served(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def assert_heard_as_served(self, **options):
        """Each call of each thread, in its order, with all its fields; nothing else. How many events these are."""
        expected = served_calls.expected(self.served(), **options)
        events = self.calls()
        pids = {event["origin"]: event["origin_process"]["pid"] for event in self.events("") if "origin_process" in event}
        heard = served_calls.heard(events, pids)
        self.assertEqual(heard.keys(), expected.keys())
        lives = served_calls.Lives()
        for thread, calls in expected.items():
            for at, (one, other) in enumerate(zip(calls, heard[thread])):
                self.assertEqual({**other, "generation": 0}, {**one, "generation": 0}, f"event {at} of {thread}")
                self.assertEqual(lives.fault(thread[0], one, other), "", f"event {at} of {thread}")
            self.assertEqual(len(heard[thread]), len(calls), thread)
        return sum(map(len, expected.values()))


    def without(self, *names):
        """A folder of the libraries that stand in, but for these, which can be loaded from nowhere: what is no library ends the search."""
        folder = self.folder / "libraries"
        folder.mkdir()
        for library in FAKES.iterdir():
            if library.name.startswith("lib") and library.name not in names:
                shutil.copy(library, folder, follow_symlinks=False)
        for name in names:
            (folder / name).write_text("no library\n")
        return folder


class TrainTest(CudaRunTest):
    """The programs are linked with CUDA's runtime and have never heard of ringmain."""

    def test_every_call_is_heard_field_by_field(self):
        for program, least in ((EACH_CALL, 600), (TRAIN, 100), (PER_THREAD, 100)):
            with self.subTest(program):
                self.forget()
                run = self.run_it(program)
                self.assertGreater(self.assert_heard_as_served(), least)
                self.assertRegex(run.stderr, r"\d+ events, 0 lost")
                notices = sorted(self.events("cuda.source"), key=lambda event: event["time_ns"])
                self.assertEqual([notice["state"] for notice in notices], ["attached", "detached"])

    def test_the_comparison_finds_a_field_that_is_wrong_an_event_that_is_missing_and_one_too_many(self):
        self.run_it(EACH_CALL)
        lines = self.lines.read_text().splitlines()
        records = [at for at, line in enumerate(lines) if '"cuda.event_record"' in line]
        event = json.loads(lines[records[0]])
        changed = [{**event, field: event[field] + 1} for field in ("event", "stream", "generation", "result", "thread", "context")]
        for other in ([json.dumps(one)] for one in changed), ([], [lines[records[0]]] * 2):
            for instead in other:
                self.lines.write_text("\n".join([*lines[:records[0]], *instead, *lines[records[0] + 1:]]))
                with self.assertRaises(AssertionError):
                    self.assert_heard_as_served()

    def test_it_does_what_it_does_alone(self):
        alone = subprocess.run([EACH_CALL], capture_output=True, text=True, check=False, env=self.variables())
        alone_served = self.names()
        self.log.unlink()
        run = self.run_it(EACH_CALL, options=(), status=alone.returncode)
        self.assertEqual((run.stdout, run.stderr), (alone.stdout, alone.stderr))
        self.assertEqual(self.names(), alone_served)
        self.assertFalse(any(one["forbidden"] for one in self.served()))

    def test_the_call_that_initialises_cuda_is_told_like_the_others(self):
        self.run_it(WAYS, "begins")
        calls = [(event["api"], event["layer"]) for event in sorted(self.calls(), key=lambda event: event["time_ns"])]
        self.assertEqual(calls, [("cudaEventCreate", "runtime"), ("cudaEventRecord", "runtime"), ("cudaEventDestroy", "runtime"),
                                 ("cudaMalloc", "runtime"), ("cudaFree", "runtime")])

    def names(self):
        """How often each call was made, with which result; we ask the driver for its version ourselves."""
        return Counter((one["name"], one["result"]) for one in self.served() if one["name"] != "cuDriverGetVersion")

    def test_a_context_is_told_with_the_call_that_made_it(self):
        self.run_it(EACH_CALL)
        (made,) = self.events("cuda.context")
        self.assertEqual((made["change"], made["phase"], made["api"]), ("made", "instant", "cudaFree"))
        self.assertNotEqual(made["handle"], 0)

    def test_the_drivers_calls_alone(self):
        self.run_it(EACH_CALL, source="cuda:driver")
        self.assertGreater(self.assert_heard_as_served(driver_only=True), 50)
        self.assertEqual({event["layer"] for event in self.calls()}, {"driver"})

    def test_nothing_is_lost_where_that_was_asked_for(self):
        run = self.run_it(WAYS, "threads", "3000", source="cuda:lossless,lane=64")
        self.assertEqual(self.assert_heard_as_served(), 5 * 3000 * 5)
        self.assertIn("0 lost", run.stderr)

    def test_what_a_full_lane_refuses_is_counted(self):
        run = self.run_it(WAYS, "threads", "3000", source="cuda:lane=64")
        self.assertEqual(run.stdout, "threads 0\n")
        lost = int(run.stderr.split(" events, ")[1].split(" lost")[0].replace(",", ""))
        self.assertEqual(len(self.calls()) + lost, 5 * 3000 * 5, run.stderr)

    def test_what_cupti_gave_may_be_gone_after_the_callback_and_there_may_be_calls_that_nobody_knows(self):
        for hostile in ("1", "4"):
            self.forget()
            self.run_it(EACH_CALL, FAKE_CUPTI_HOSTILE=hostile)
            self.assertGreater(self.assert_heard_as_served(), 600)


class StepTest(CudaRunTest):
    def in_steps(self):
        """How many events by step; in step N the program makes N times five calls."""
        return Counter(event.get("in_step") for event in self.calls())

    def test_calls_know_the_step_that_c_says(self):
        self.run_it(STEPS, "4")
        self.assertEqual(self.in_steps(), {None: 5, 1: 5, 2: 10, 3: 15, 4: 20})
        self.assert_heard_as_served()

    def test_calls_know_the_step_that_nvtx_says(self):
        by_nvtx = os.environ.get("RINGMAIN_STEPS_BY_NVTX", "")
        if not by_nvtx:
            self.skipTest("there is no nvtx3/nvToolsExt.h (set RINGMAIN_NVTX_HEADERS to the folder that has it)")
        self.run_it(by_nvtx, "4", source="cuda nvtx:step=step*")
        self.assertEqual(self.in_steps(), {None: 5, 1: 5, 2: 10, 3: 15, 4: 20})


class EndTest(CudaRunTest):
    def test_what_was_called_right_before_an_end_is_heard(self):
        for way, status in (("returns", 0), ("_exit", 5), ("exec", 0), ("pthread_exit", 0)):
            with self.subTest(way):
                self.forget()
                self.run_it(WAYS, way, "200", options=(), status=status)
                self.assertEqual(self.assert_heard_as_served(), 1000)
                counts = [[notice[name] for name in ("published", "refused", "suppressed", "unkept")] for notice in self.notices("detached")]
                self.assertEqual(counts, [[len(self.calls() + self.events("cuda.context")), 0, 0, 0]] if way != "exec" else [])

    def test_the_last_counts_are_right_where_threads_still_call(self):
        """Before the end what is under way is counted, and nothing is published after that."""
        for way, status in (("exit_among_calls", 8), ("_exit_among_calls", 9)):
            with self.subTest(way):
                self.forget()
                self.run_it(WAYS, way, "500", source="cuda:lossless", options=(), status=status)
                (last,) = self.notices("detached")
                self.assertEqual(last["published"], len(self.calls() + self.events("cuda.context")), last)
                self.assertGreaterEqual(len(self.calls()), 5 * 500)

    def test_handles_without_room_are_counted_to_the_end(self):
        self.run_it(WAYS, "hoards", "6000", source="cuda:handles=1024,lossless", options=())
        (last,) = self.notices("detached")
        self.assertEqual(last["unkept"], sum(event["generation"] == 0 for event in self.events("cuda.event_creation")))
        self.assertGreater(last["unkept"], 4000)

    def test_a_killed_program_leaves_whole_lines(self):
        self.run_it(WAYS, "killed", "200", options=(), status=-9)
        self.assertLessEqual(len(self.calls()), 1000)  # which are parsed

    def test_a_child_that_starts_cuda_itself_is_heard(self):
        run = self.run_it(WAYS, "child_first", "10")
        self.assertEqual(run.stdout, "child_first 6\n")
        self.assertEqual(self.assert_heard_as_served(), 100)
        self.assertEqual(len({event["origin"] for event in self.calls()}), 2)

    def test_a_child_of_one_that_has_used_cuda_waits_for_nobody(self):
        for way, status in (("child_after", 7), ("child_execs", 0)):
            with self.subTest(way):
                self.forget()
                self.assertEqual(self.run_it(WAYS, way, "10").stdout, f"{way} {status}\n")
                self.assertEqual(self.assert_heard_as_served(), 50)

    def test_a_program_that_never_calls_cuda_has_nothing_of_it(self):
        for way in ("idle", "loads"):
            run = self.run_it(WAYS, way, source="cuda heartbeat", status=3)
            self.assertIn("cuda was never used by the program", run.stderr)
            self.assertEqual(self.calls(), [])

    def test_where_cuda_is_never_initialised_the_summary_says_so(self):
        here = r"\A(train: [^\n]*\n)?ringmain: \w+ \(pid \d+\): CUDA was never initialised in this process; [^\n]*nvidia-smi -L[^\n]*\n\Z"
        for command, status, variables in (((WAYS, "idle"), 3, {}), ((TRAIN,), 1, {"FAKE_CUDA_DEVICES": "0"})):
            with self.subTest(command):
                self.assertRegex(self.run_it(*command, status=status, **variables).stderr, here)
                self.assertFalse(self.lines.exists())
        self.assertEqual(self.run_it(WAYS, "idle", status=3, options=()).stderr, "")

    def test_who_starts_others_says_of_itself_that_it_never_initialised_cuda(self):
        run = self.run_it("sh", "-c", f"'{WAYS}' returns 2; exit 4", status=4)
        others, own = run.stderr.splitlines()
        self.assertRegex(others, r"\Aringmain: \w+ \(pid \d+\): \d+ events, 0 lost")
        self.assertRegex(own, r"\Aringmain: sh \(pid \d+\): CUDA was never initialised in this process, which has started others: ")

    def test_one_that_is_left_out_is_not_heard(self):
        run = self.run_it("sh", "-c", f"'{WAYS}' returns 2; exit 4", options=("--summary", "--except", Path(WAYS).name), status=4,
                          CUDA_INJECTION64_PATH=TOOL)
        self.assertEqual((run.stdout, self.calls()), ("returns 0\n", []))
        self.assertEqual(run.stderr.count("tool: call 1, -1\n"), 1, run.stderr)


class RefusedTest(CudaRunTest):
    """In each case the program does all that it does alone, and one sentence says why nothing is heard."""

    def refused(self, sentence, *command, unheard=True, **options):
        run = self.run_it(*(command or (WAYS, "returns", "2")), **options)
        self.assertEqual(run.stdout, "returns 0\n")
        said = [line for line in run.stderr.splitlines() if "source cuda could not attach to " in line]
        self.assertEqual(len(said), 1, run.stderr)
        self.assertIn(sentence, said[0])
        self.assertIn("; cuda did not attach", run.stderr)
        self.assertEqual(self.calls(), [])
        return self.notices("unavailable")

    def test_without_a_driver(self):
        """The program cannot start CUDA, so that nobody lets ringmain in; it says so beforehand, and once for all that is started."""
        run = self.run_it("sh", "-c", f"'{WAYS}' idle; '{WAYS}' idle; exit 4", status=4, options=(), libraries=self.without("libcuda.so.1"))
        self.assertRegex(run.stderr, r"\Aringmain: source cuda cannot attach: CUDA is not heard, as there is no NVIDIA driver here: [^\n]*"
                                     r"; what it starts on a machine with a driver is heard there\n\Z")
        self.assertFalse(self.lines.exists())

    def test_where_there_is_a_driver_nothing_is_said_beforehand(self):
        self.assertEqual(self.run_it("sh", "-c", "exit 4", status=4, options=()).stderr, "")

    def test_without_cupti(self):
        (notice,) = self.refused("there is no CUPTI", libraries=self.without("libcupti.so.13", "libcupti.so.12"))
        self.assertIn("there is no CUPTI", notice["reason"])

    def test_where_its_place_is_taken(self):
        (notice,) = self.refused("Nsight Something has it", FAKE_CUPTI_SUBSCRIBE="39:Nsight Something")
        self.assertEqual((notice["owner"], notice["result"]), ("Nsight Something", 39))
        self.assertEqual(notice["cupti"], 130001)

    def test_where_only_administrators_may(self):
        (notice,) = self.refused("NVreg_RestrictProfilingToAdminUsers=0", FAKE_CUPTI_SUBSCRIBE="35")
        self.assertEqual(notice["result"], 35)

    def test_with_a_cupti_that_is_too_old(self):
        self.refused("take the CUPTI of CUDA 12.0 or later", FAKE_CUPTI_VERSION="17")

    def test_with_a_file_that_is_no_cupti(self):
        folder = self.without("libcupti.so.13", "libcupti.so.12")
        shutil.copy(FAKES / "libcudart.so.13", self.folder / "other.so")
        self.refused("lacks cuptiGetVersion", libraries=folder, source=f"cuda:cupti={self.folder / 'other.so'}")
        self.lines.unlink()
        self.refused("cannot be loaded", libraries=folder, source="cuda:cupti=/nowhere/libcupti.so.13")

    def test_a_newer_cupti_is_taken(self):
        for version in ("120900", "28", "130301", "130500", "149999"):
            with self.subTest(version):
                self.lines.unlink(missing_ok=True)
                self.run_it(WAYS, "returns", "2", FAKE_CUPTI_VERSION=version)
                self.assertEqual(len(self.calls()), 10)
                self.assertEqual(self.notices("attached")[0]["cupti"], int(version))

    def test_a_wrong_word_is_a_wrong_call(self):
        run = self.run_it(WAYS, "returns", source="cuda:drivr", status=2)
        self.assertIn("and not 'drivr'; did you mean 'driver'?", run.stderr)
        self.assertEqual((run.stdout, self.served()), ("", []))

    def test_the_words_are_where_the_refusal_points_to(self):
        refused = self.run_it(WAYS, "returns", source="cuda:lane=5", status=2).stderr
        self.assertIn("'ringmain run --help' says more", refused)
        told = subprocess.run([BINARY, "run", "--help"], capture_output=True, text=True, check=True).stdout
        every = self.run_it(WAYS, "returns", source="cuda:?", status=2).stderr
        words = re.search("cuda takes (.*), divided", every)[1].replace(" and ", ", ").split(", ")
        self.assertEqual(len(words), 8, every)
        for word in words:
            self.assertRegex(told, rf"\n  {word} +\S")
        for number in ("64 to 1048576, 8192", "1024 to 16777216, 65536"):
            self.assertIn(number, told)
        self.assertIn("from 64 to 1048576", refused)

    def test_the_source_with_other_words_a_second_time_is_a_wrong_call(self):
        run = self.run_it(WAYS, "returns", source="cuda cuda:driver", status=2)
        self.assertIn("a process has one source cuda, and it cannot be both 'cuda' and 'cuda:driver': name it once", run.stderr)
        self.assertEqual((run.stdout, self.served()), ("", []))
        self.run_it(WAYS, "returns", "2", source="cuda:hold cuda:hold")
        self.assertEqual(self.assert_heard_as_served(), 10)


class ToolTest(CudaRunTest):
    """Another tool that the program was to have by the same variable."""

    def test_it_is_started_once_and_before_us(self):
        run = self.run_it(WAYS, "returns", "2", CUDA_INJECTION64_PATH=TOOL)
        self.assertEqual(run.stderr.count("tool: call"), 1, run.stderr)
        self.assertIn("tool: call 1, -1\n", run.stderr)
        self.assertEqual(self.assert_heard_as_served(), 10)

    def test_the_place_is_its_where_it_takes_it(self):
        run = self.run_it(WAYS, "returns", "2", CUDA_INJECTION64_PATH=TOOL, TOOL_TAKES="1")
        self.assertIn("tool: call 1, 0\n", run.stderr)
        self.assertIn("the other tool has it", run.stderr)
        self.assertEqual((run.stdout, self.calls()), ("returns 0\n", []))
        (notice,) = self.notices("unavailable")
        self.assertEqual(notice["owner"], "the other tool")

    def test_one_that_cannot_be_loaded_is_named(self):
        run = self.run_it(WAYS, "returns", "2", CUDA_INJECTION64_PATH="/nowhere/tool.so")
        self.assertIn("the CUDA tool that CUDA_INJECTION64_PATH named before the run cannot be used", run.stderr)
        self.assertEqual(self.assert_heard_as_served(), 10)

    def test_a_run_within_a_run_is_no_circle(self):
        run = self.run_it(BINARY, "run", "--source", "cuda", "--summary", "--sink", f"json_lines:{self.lines}", "--", WAYS,
                          "returns", "2", CUDA_INJECTION64_PATH=TOOL)
        self.assertEqual(run.stderr.count("tool: call"), 1, run.stderr)
        self.assertEqual(self.assert_heard_as_served(), 10)


if __name__ == "__main__":
    sys.exit(main())
