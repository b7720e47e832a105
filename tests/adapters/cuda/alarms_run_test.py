#!/usr/bin/env python3
"""Is what deserves an alarm told below `ringmain run --source cuda --sink alarms`, in sentences and as events?

usage: alarms_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY, the libraries that stand in for NVIDIA's in $RINGMAIN_FAKES
and the training loop in $RINGMAIN_ALARMS
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from cases import main

BINARY, FAKES, PROGRAM = (os.environ[f"RINGMAIN_{name}"] for name in ("BINARY", "FAKES", "ALARMS"))


class AlarmsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_it(self, kind, *sinks, status=0, command=(PROGRAM,), steps="20"):
        words = [word for sink in sinks for word in ("--sink", sink)]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "FAKE_", "LD_LIBRARY"))}
        run = subprocess.run([BINARY, "run", "--source", "cuda", *words, "--", *command, kind, steps], capture_output=True, text=True,
                             check=False, env={**kept, "LD_LIBRARY_PATH": FAKES})
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        return run

    def test_each_fault_is_a_sentence_once_and_counted_at_the_end(self):
        lines = self.run_it("faults", "alarms").stderr.splitlines()
        thread = re.search(r"thread (\d+)", lines[0])[1]
        self.assertEqual([re.sub(r"0x[0-9a-f]+", "0x…", line) for line in lines], [f"alarms: {line}" for line in (
            f"cudaDeviceSynchronize waits for the whole device in step 1, thread {thread}",
            f"live memory has grown by 5242880 bytes up to step 15, in each of the last steps; the largest of it is by cudaMalloc, thread {thread}",
            f"2 events of cudaEventCreate were never deleted: the first is 0x…, made in step 1 by thread {thread}",
            f"1 stream of cudaStreamCreate was never deleted: 0x…, made in step 1 by thread {thread}",
            f"cudaDeviceSynchronize waits for the whole device in step 20, thread {thread}; 20 times in all",
            f"live memory has grown by 5242880 bytes up to step 20, in each of the last steps; the largest of it is by cudaMalloc, "
            f"thread {thread}; 2 times in all",
            "20 synchronizations inside steps, 2 events were never deleted, 1 stream was never deleted, 2 growths of memory")])

    def test_a_program_without_faults_has_none(self):
        self.assertEqual(self.run_it("none", "alarms").stderr, "alarms: none\n")

    def test_without_its_source_it_says_that_nothing_was_heard(self):
        run = subprocess.run([BINARY, "run", "--sink", "alarms", "--", "true"], capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "alarms: no call of CUDA's was heard, and so none was judged\n")

    def test_a_replay_says_what_it_could_not_judge(self):
        names = ("cudaEventCreate", "cudaEventDestroy", "cudaDeviceSynchronize")
        trace = self.folder / "trace.json"
        trace.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "cuda_runtime", "name": names[number % 3], "pid": 1, "tid": 1, "ts": number, "dur": 1,
             "args": {"correlation": number}} for number in range(60)]}))
        for words in ([], ["--sink", "summary"], ["--order", "recorded"], ["--loop", "2"]):
            run = subprocess.run([BINARY, "replay", "--quiet", "--speed", "max", "--sink", "alarms", *words, trace],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            [last] = [line for line in run.stderr.splitlines() if line.startswith("alarms: ")]
            self.assertRegex(last, r"^alarms: none; no training step was told, .*; \d+ events and streams came without a handle, ")

    def test_what_is_allowed_is_none_and_the_words_are_obeyed(self):
        words = "alarms:allow=cudaDeviceSynchronize,without=leaks,warmup=17,rises=2"
        run = self.run_it("faults", words)
        self.assertRegex(run.stderr, r"\Aalarms: live memory has grown by 2097152 bytes up to step 19, .*\nalarms: 1 growth of memory\n\Z")

    def test_they_are_events_for_other_sinks_and_sentences_in_a_file(self):
        text, events = self.folder / "alarms.txt", self.folder / "events.jsonl"
        run = self.run_it("faults", f"alarms:file={text}", f"json_lines:{events}")
        self.assertEqual(run.stderr, "")
        self.assertEqual(len(text.read_text().splitlines()), 7)
        told = [json.loads(line) for line in events.read_text().splitlines() if '"cuda.alarm"' in line]
        self.assertEqual([(one["kind"], one["count"], one["step"], one["api"]) for one in told], [
            ("synchronization", 1, 1, "cudaDeviceSynchronize"), ("growth", 1, 15, "cudaMalloc"), ("leaked_events", 2, 1, "cudaEventCreate"),
            ("leaked_streams", 1, 1, "cudaStreamCreate"), ("synchronization", 20, 20, "cudaDeviceSynchronize"), ("growth", 2, 20, "cudaMalloc")])

    def test_words_that_are_wrong_are_refused_before_anything_starts(self):
        run = self.run_it("none", "alarms:warmpu=2", status=2)
        self.assertIn("and not 'warmpu=2'; did you mean 'warmup'?", run.stderr)
        self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    sys.exit(main())
