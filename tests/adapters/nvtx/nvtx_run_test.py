#!/usr/bin/env python3
"""Does `ringmain run --source nvtx` hear what programs say with the real NVTX?

usage: nvtx_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in the variables below
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from cases import main

BINARY = os.environ["RINGMAIN_BINARY"]
RANGES, COPIES, LOADED, TOOL = (os.environ.get(f"RINGMAIN_{name}", "") for name in ("RANGES", "COPIES", "LOADED", "TOOL"))


class NvtxRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.lines = Path(folder.name) / "events.jsonl"

    def run_it(self, *command, options=("--source", "nvtx", "--summary"), status=0, **environment):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("NVTX_", "RINGMAIN_NVTX"))}
        run = subprocess.run([BINARY, "run", *options, "--sink", f"json_lines:{self.lines}", "--", *command],
                             capture_output=True, text=True, timeout=100, check=False, env={**env, **environment})
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        return run

    def events(self, channel):
        every = [json.loads(line) for line in self.lines.read_text().splitlines()]
        return [event for event in every if event["channel"] == channel]

    def ranges(self):
        return [(event["edge"], event["domain"], event["message"]) for event in self.events("nvtx.range")]


@unittest.skipIf(not RANGES, "there is no nvtx3/nvToolsExt.h (set RINGMAIN_NVTX_HEADERS to the folder that has it)")
class ProgramsTest(NvtxRunTest):
    def test_a_c_program_is_heard_exactly(self):
        run = self.run_it(RANGES)
        self.assertEqual(run.stdout, "0 0 1\n")
        # Order holds within a thread; the one event of the other thread may come anywhere.
        self.assertEqual([one for one in self.ranges() if one != ("end", "", "started")],
                         [("begin", "", "outer"), ("begin", "", "w\u00efde"), ("end", "", "w\u00efde"),
                          ("end", "", "outer"), ("begin", "", "started"), ("begin", "loader", "registered"),
                          ("end", "loader", "registered")])
        started = [event for event in self.events("nvtx.range") if event["shape"] == "started"]
        self.assertEqual(len({event["id"] for event in started}), 1)
        self.assertEqual(len({event["thread"] for event in started}), 2)
        self.assertEqual([event["message"] for event in started], ["started", "started"])
        self.assertGreater(max(event["took_ns"] for event in started), 0)
        self.assertEqual([event["message"] for event in self.events("nvtx.mark")], ["hello", "registered"])
        given = self.events("nvtx.mark")[1]
        self.assertEqual({key: given[key] for key in ("domain", "category", "category_name", "color", "payload",
                                                      "payload_signed")},
                         {"domain": "loader", "category": 3, "category_name": "io", "color": 0xff112233,
                          "payload": "i64", "payload_signed": -42})
        self.assertIn("10 events, 0 lost", run.stderr)

    def test_every_copy_of_the_headers_in_a_process_is_heard(self):
        self.run_it(COPIES, LOADED)
        self.assertEqual(self.ranges(), [("begin", "training", "own"), ("begin", "", "linked"), ("end", "", "linked"),
                                         ("end", "training", "own")]
                         + [("begin", "", "loaded"), ("end", "", "loaded")] * 2)
        own = self.events("nvtx.range")[0]
        self.assertEqual((own["payload"], own["payload_float"]), ("f64", 1.5))

    def test_another_tool_behind_ringmain_hears_the_same(self):
        said = "tool: 1 pushes, 3 pops, 2 own, 0 foreign\n"
        alone = subprocess.run([RANGES], capture_output=True, text=True, check=True,
                               env={**os.environ, "NVTX_INJECTION64_PATH": TOOL})
        self.assertEqual(alone.stderr, said)
        run = self.run_it(RANGES, NVTX_INJECTION64_PATH=TOOL)
        self.assertIn(said, run.stderr)
        self.assertIn("10 events, 0 lost", run.stderr)
        self.assertEqual(run.stdout, alone.stdout)

    def test_ranges_that_are_named_are_the_steps_of_all_events(self):
        run = self.run_it(RANGES, options=("--source", "nvtx:step=outer,phase=w*", "--summary"))
        self.assertEqual(run.stdout, "0 0 1\n")
        self.assertEqual([(event["edge"], event["step"], event["phase"]) for event in self.events("train.step")],
                         [("begin", 1, ""), ("begin", 1, "w\u00efde"), ("end", 1, "w\u00efde"), ("end", 1, "")])
        inside = [(event["edge"], event["message"], event.get("in_step"), event.get("in_phase"))
                  for event in self.events("nvtx.range") if event["message"] in ("outer", "w\u00efde")]
        self.assertEqual(inside, [("begin", "outer", 1, None), ("begin", "w\u00efde", 1, "w\u00efde"),
                                  ("end", "w\u00efde", 1, "w\u00efde"), ("end", "outer", 1, None)])
        self.assertEqual([event.get("in_step") for event in self.events("nvtx.mark")], [None, None])

    def test_what_was_said_right_before_exit_without_handlers_or_exec_is_heard(self):
        for way, status in (("_exit", 3), ("exec", 0)):
            with self.subTest(way):
                self.lines.unlink(missing_ok=True)
                self.run_it(RANGES, way, options=("--source", "nvtx"), status=status)
                self.assertEqual((len(self.ranges()), len(self.events("nvtx.mark"))), (8, 2))

    def test_a_wrong_rule_for_steps_is_a_wrong_call(self):
        run = self.run_it(RANGES, options=("--source", "nvtx:stop=outer", "--summary"), status=2)
        self.assertIn("nvtx takes step=MESSAGE[@DOMAIN]", run.stderr)
        self.assertEqual(run.stdout, "")

    def test_a_tool_that_cannot_be_loaded_is_named_and_the_program_runs(self):
        run = self.run_it(RANGES, NVTX_INJECTION64_PATH="/nowhere/tool.so")
        self.assertIn("the NVTX tool that NVTX_INJECTION64_PATH named before the run cannot be used", run.stderr)
        self.assertIn("10 events, 0 lost", run.stderr)

    def test_a_run_within_a_run_is_no_circle(self):
        run = self.run_it(BINARY, "run", "--source", "nvtx", "--summary", "--", RANGES, NVTX_INJECTION64_PATH=TOOL)
        self.assertIn("tool: 1 pushes, 3 pops, 2 own, 0 foreign\n", run.stderr)
        self.assertIn("10 events, 0 lost", run.stderr)

    def test_a_program_without_nvtx_is_told_apart(self):
        self.assertIn("nvtx was never used by the program",
                      self.run_it("sh", "-c", "exec " + BINARY + " --version", options=("--source", "nvtx", "--source",
                                                                                       "heartbeat", "--summary")).stderr)

    def test_without_the_source_a_program_is_left_alone(self):
        run = self.run_it(RANGES, options=("--summary",))
        self.assertEqual(run.stdout, "-2 -2 1\n")
        self.assertIn("0 events", run.stderr)


PYTHON = """
import nvtx, threading
@nvtx.annotate("decorated", domain="train", color="red")
def work(): pass
work()
with nvtx.annotate("outer"):
    nvtx.mark("here", payload=7)
    nvtx.push_range("inner", category="io")
    nvtx.pop_range()
started = nvtx.start_range("loading")
thread = threading.Thread(target=nvtx.end_range, args=(started,))
thread.start(); thread.join()
"""


@unittest.skipIf(importlib.util.find_spec("nvtx") is None, "there is no Python package nvtx")
class PythonTest(NvtxRunTest):
    def test_the_python_package_is_heard_exactly(self):
        run = self.run_it(sys.executable, "-c", PYTHON)
        ranges = self.ranges()
        self.assertEqual([one for one in ranges if one[1] == "train"],
                         [("begin", "train", "decorated"), ("end", "train", "decorated")])
        pushed = [(event["edge"], event["message"], event["depth"]) for event in self.events("nvtx.range")
                  if event["shape"] == "pushed" and event["domain"] != "train"]
        self.assertEqual(pushed, [("begin", "outer", 0), ("begin", "inner", 1), ("end", "inner", 1), ("end", "outer", 0)])
        inner = next(event for event in self.events("nvtx.range") if event["message"] == "inner")
        self.assertEqual(inner["category_name"], "io")
        started = [event for event in self.events("nvtx.range") if event["shape"] == "started"]
        self.assertEqual([event["edge"] for event in sorted(started, key=lambda event: event["edge"])], ["begin", "end"])
        self.assertEqual(len({event["id"] for event in started}), 1)
        self.assertEqual({event["message"] for event in started}, {"loading"})
        mark = self.events("nvtx.mark")[0]
        self.assertEqual((mark["message"], mark["payload_signed"] + mark["payload_unsigned"]), ("here", 7))
        self.assertIn("9 events, 0 lost", run.stderr)


if __name__ == "__main__":
    sys.exit(main())
