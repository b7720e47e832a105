#!/usr/bin/env python3
"""Are forked children of a process below `ringmain run` heard, and is what is not heard counted?

usage: forked_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
PROGRAMS = Path(os.environ.get("RINGMAIN_PROGRAMS", Path(BINARY).parent))
FORKER = str(PROGRAMS / "run_forker")
LIBRARY = str(PROGRAMS / "run_forker_library.so")
OPEN = f"import ctypes, multiprocessing, os\nlibrary = ctypes.CDLL({LIBRARY!r})\nsay = library.forker_say\nsay.argtypes = [ctypes.c_uint64]\n"


class ForkedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.lines = Path(folder.name) / "events.jsonl"

    def said(self, *words, summaries=1):
        """The lines on standard error: the summaries."""
        run = subprocess.run([BINARY, "run", "--summary", "--sink", f"json_lines:{self.lines}", "--", *words],
                             capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), summaries, run.stderr)
        return run.stderr

    def heard(self):
        every = [json.loads(line) for line in self.lines.read_text().splitlines()]
        return sum(event["channel"].startswith("program.") for event in every)

    def test_what_forked_children_publish_on_their_parents_bus_is_counted(self):
        self.assertIn("100 events, 0 lost, 600 published in forked children, not heard: program.said 100",
                      self.said(FORKER, "after", "100"))
        self.assertEqual(self.heard(), 100)

    def test_what_their_children_publish_is_counted_too(self):
        self.assertIn("10 events, 0 lost, 90 published in forked children, not heard: ", self.said(FORKER, "nested", "10"))

    def test_a_child_that_is_killed_has_been_counted(self):
        self.assertIn("10 events, 0 lost, 60 published in forked children, not heard: ", self.said(FORKER, "killed", "10"))

    def test_a_child_that_outlives_its_parent_says_nothing(self):
        self.assertIn("10 events, 0 lost: program.said 10\n", self.said(FORKER, "outlived", "10"))

    def test_nothing_is_said_where_no_child_published(self):
        self.assertNotIn("forked", self.said(sys.executable, "-c", OPEN + "say(5)\nif os.fork() == 0: os._exit(0)\nos.wait()\n"))

    def test_children_of_python_are_counted(self):
        script = OPEN + ("say(5)\n"
                         "if os.fork() == 0:\n  say(7)\n  os._exit(0)\n"
                         "os.wait()\n"
                         "pool = multiprocessing.get_context('fork').Process(target=say, args=(11,))\n"
                         "pool.start()\npool.join()\n")
        self.assertRegex(self.said(sys.executable, "-c", script),
                         r"5 events, 0 lost, 18 published in forked children, not heard: program.said 5\n")


if __name__ == "__main__":
    sys.exit(main())
