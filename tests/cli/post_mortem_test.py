#!/usr/bin/env python3
"""Does `ringmain post-mortem` tell what a process published last, wherever SIGKILL found it?

usage: post_mortem_test.py [CASE]     RINGMAIN_BINARY is the program, RINGMAIN_EXAMPLE the example flight_recorder;
                                      RINGMAIN_KILLS says how often a process is killed, 20 unless said
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import cases  # noqa: E402

BINARY = os.environ["RINGMAIN_BINARY"]
EXAMPLE = os.environ["RINGMAIN_EXAMPLE"]
KILLS = int(os.environ.get("RINGMAIN_KILLS", "20"))
FOR_EVER = "100000000000"


class PostMortemTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "flight"
        self.environment = {**os.environ, "RINGMAIN_FLIGHT_DIR": str(self.folder)}

    def ringmain(self, *words):
        return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False, env=self.environment)

    def dumps(self, *words):
        run = self.ringmain("post-mortem", "--json", "--last", 1000000, *words)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def start(self, *command):
        """The process, once it publishes: the example says its file before that."""
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=self.environment)
        self.assertIn("post-mortem", process.stdout.readline())
        return process

    def check_steps(self, ring):
        """Of one thread: its steps are numbered from 1, so what is written, overwritten and readable can be told from them."""
        self.assertEqual(ring["written"], ring["readable"] + ring["overwritten"])
        self.assertEqual(ring["unreadable"], 0)
        self.assertLessEqual(ring["under_way"], 1)
        steps = [event["event"]["step"] for event in ring["events"]]
        self.assertEqual(steps, list(range(ring["overwritten"] + 1, ring["written"] + 1)))
        self.assertEqual([event["sequence"] for event in ring["events"]], steps)
        self.assertEqual({event["channel"] for event in ring["events"]}, {"train.step"})

    def test_whatever_moment_it_is_killed_at_all_is_readable_or_counted(self):
        steps = 0
        for _ in range(KILLS):
            process = self.start(BINARY, "run", "--flight", "train.*,collective.>", "--", EXAMPLE, FOR_EVER)
            for _ in range(random.randrange(3)):  # while it is read it goes on
                self.dumps(process.pid)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            dumps = self.dumps(process.pid)
            self.assertEqual(len(dumps), 2)  # the run's, and the program's own
            for dump in dumps:
                self.assertEqual(dump["process"]["state"], "dead")
                self.assertFalse(dump["process"]["closed"])
                self.assertEqual(dump["unrecorded"], 0)
                self.assertLessEqual(len(dump["open_operations"]), 2)
                for ring in dump["rings"]:
                    if ring["pattern"] == "train.*":
                        self.check_steps(ring)
                        steps += ring["written"]
                    else:
                        self.assertEqual(ring["written"], ring["readable"] + ring["overwritten"])
                        self.assertEqual(ring["unreadable"], 0)
        self.assertGreater(steps, 0)

    def test_the_operations_that_hang_are_named_and_closed_in_order_is_said(self):
        run = subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, text=True, env=self.environment)
        told = self.ringmain(*run.stdout.split()[1:])
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("operations that were issued and had not ended: 2", told.stdout)
        for group in ("data", "tensor"):
            self.assertIn(f"all_reduce of group '{group}' #20, 4.00 MiB", told.stdout)
            self.assertIn(f"group '{group}': #1 to #20 readable, 20 operations", told.stdout)
        # A thread that ends before the other one begins leaves it its rings.
        self.assertRegex(told.stdout, "(20 written = 20 readable|40 written = 40 readable) [+] 0 overwritten")
        self.assertIn("closed in order", told.stdout)
        self.assertIn("train.step #20  step=20  loss=0.05", told.stdout)

    def test_a_sink_gets_all_events_in_the_order_of_their_times(self):
        subprocess.run([EXAMPLE, "100"], check=True, capture_output=True, env=self.environment)
        lines = self.folder.parent / "last.jsonl"
        run = self.ringmain("post-mortem", "--sink", f"json_lines:{lines}", self.folder)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        events = [json.loads(line) for line in lines.read_text().splitlines()]
        steps = [event for event in events if event["channel"] == "train.step"]
        self.assertEqual(len(steps), 200)
        self.assertEqual({event["op"] for event in events if event["channel"] == "collective.issued"}, {"all_reduce"})
        recorded = [event for dump in self.dumps() for ring in dump["rings"] for event in ring["events"]]
        self.assertEqual(sorted(event["time_ns"] for event in events), sorted(event["time_ns"] for event in recorded))

    def test_cut_and_foreign_files_get_one_sentence(self):
        subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
        whole = next(self.folder.iterdir()).read_bytes()
        odd = self.folder.parent / "odd.ring"
        for size in (0, 8, 100, 4095, 4096, 100_000, len(whole) - 1):
            odd.write_bytes(whole[:size])
            run = self.ringmain("post-mortem", odd)
            self.assertEqual(run.returncode, 1, size)
            self.assertNotIn("Traceback", run.stderr)
            self.assertTrue(run.stdout or len(run.stderr.splitlines()) == 1, (size, run.stdout, run.stderr))
        generator = random.Random(7)
        for _ in range(30):
            bytes_now = bytearray(whole)
            for _ in range(40):
                bytes_now[generator.randrange(600_000)] = generator.randrange(256)
            odd.write_bytes(bytes_now)
            run = self.ringmain("post-mortem", odd)
            self.assertIn(run.returncode, (0, 1))
            self.assertIn(len(run.stderr.splitlines()), (0, 1))

    def test_wrong_calls_are_answered_with_what_to_do(self):
        for words, status, said in (
                (("post-mortem",), 1, "record with: ringmain run --flight"),
                (("post-mortem", "/nowhere"), 1, "there is no file, folder or process '/nowhere'"),
                (("post-mortem", "999999999"), 1, "left no file in"),
                (("post-mortem", "--jsn"), 2, "--json"),
                (("post-mortem", "--last", "few"), 2, "--last is a number"),
                (("post-mortem", "--sink", "json_line:x"), 2, "json_lines"),
                (("post-mortm",), 2, "post-mortem"),
                (("run", "--flight", "a,,b", "--", "true"), 2, "is empty")):
            run = self.ringmain(*words)
            self.assertEqual(run.returncode, status, (words, run.stderr))
            self.assertIn(said, run.stderr, words)


if __name__ == "__main__":
    sys.exit(cases.main())
