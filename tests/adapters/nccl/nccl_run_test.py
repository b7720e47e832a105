#!/usr/bin/env python3
"""Does `ringmain run --source nccl` hear a program whose NCCL loads its profiler plugin?

usage: nccl_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY, the front end in $RINGMAIN_FRONT_END and a plugin
of somebody else's in $RINGMAIN_FAKE, a front end that has one itself in $RINGMAIN_STATIC, and the folders of what stands
in for NCCL in $RINGMAIN_FAKE_NCCL and, for one that is too old, in $RINGMAIN_OLD_NCCL
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from cases import main

BINARY, FRONT_END, FAKE, STATIC, FAKE_NCCL, OLD_NCCL = (
    os.environ[f"RINGMAIN_{name}"] for name in ("BINARY", "FRONT_END", "FAKE", "STATIC", "FAKE_NCCL", "OLD_NCCL"))


class NcclRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.lines = Path(folder.name) / "events.jsonl"

    def run_it(self, *command, source="nccl:kernel=always", status=0, sinks=True, **environment):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RINGMAIN_NCCL"))}
        options = ["--sink", f"json_lines:{self.lines}"] if sinks else []
        run = subprocess.run([BINARY, "run", "--source", source, "--summary", *options, "--", *command],
                             capture_output=True, text=True, check=False, env={**env, **environment})
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        return run

    def events(self, channel):
        every = [json.loads(line) for line in self.lines.read_text().splitlines()]
        return sorted((event for event in every if event["channel"] == channel), key=lambda event: event["time_ns"])

    def test_a_program_is_heard_exactly(self):
        run = self.run_it(FRONT_END, "1", "3")
        self.assertTrue(run.stdout.startswith("mask 0x7fff"), run.stdout)
        operations = self.events("nccl.operation")
        self.assertEqual([one["event_sequence"] for one in operations], [0, 1, 2])
        self.assertEqual({one["group"] for one in operations}, {"0:default_pg"})
        self.assertEqual({one["rank"] for one in operations}, {1})
        completed = self.events("collective.completed")
        self.assertEqual([one["op_id"] for one in completed], [one["op_id"] for one in operations])
        self.assertEqual([one["kind"] for one in self.events("nccl.evidence")], ["kernel_channels"] * 3)
        states = [one["state"] for one in self.events("nccl.plugin")]
        self.assertEqual(states, ["attached", "opened", "closed", "detached"])
        last = self.events("nccl.plugin")[-1]
        self.assertEqual((last["started"], last["stopped"], last["open"]), (9, 9, 0))

    def test_what_was_said_before_an_abrupt_end_is_there(self):
        self.run_it(FRONT_END, "1", "5", "leave")
        self.assertEqual(len(self.events("nccl.operation")), 5)
        self.assertEqual([one["state"] for one in self.events("nccl.plugin")][-1], "detached")

    def test_a_plugin_that_is_loaded_and_unloaded_a_hundred_times(self):
        self.run_it(FRONT_END, "100", "2")
        self.assertEqual(len(self.events("nccl.operation")), 200)
        self.assertEqual([one["state"] for one in self.events("nccl.plugin")].count("closed"), 100)

    def test_a_job_that_hangs_says_so_while_it_does(self):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RINGMAIN_NCCL"))}
        with subprocess.Popen([BINARY, "run", "--source", "nccl:kernel=always,stall=1", "--sink", f"json_lines:{self.lines}", "--",
                               FRONT_END, "1", "3", "hang"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env) as job:
            while not (self.lines.exists() and '"nccl.stalled"' in self.lines.read_text()):
                self.assertIsNone(job.poll(), "it ended before it was said to hang")
                time.sleep(0.02)
            (stalled,) = [json.loads(line) for line in self.lines.read_text().splitlines() if '"nccl.stalled"' in line]
            job.stdin.close()
            self.assertEqual(job.wait(), 0)
        self.assertEqual((stalled["func"], stalled["group"], stalled["rank"], stalled["event_sequence"], stalled["reading"]),
                         ("AllReduce", "0:default_pg", 1, 2, "not_begun"))
        self.assertGreaterEqual(stalled["waited_ns"], 1_000_000_000)
        self.assertEqual(len(self.events("nccl.stalled")), 1)  # once

    @contextlib.contextmanager
    def hanging(self, source, *sinks):
        """A job whose last collective hangs, and what its door says of it."""
        with tempfile.TemporaryDirectory() as doors:
            env = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RINGMAIN_NCCL"))}
            env["RINGMAIN_DOOR"] = doors

            def door(*words):
                return subprocess.run([BINARY, "door", "stalled", *words], env=env, capture_output=True, text=True, check=False)

            with subprocess.Popen([BINARY, "run", "--source", source, "--door", *sinks, "--", FRONT_END, "1", "3", "hang"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as job:
                self.assertEqual(job.stdout.readline(), "hangs\n")
                yield door
                job.stdin.close()
                job.stdout.read()
                self.assertEqual(job.wait(), 0)

    def test_a_job_that_hangs_is_asked_at_its_door_though_nobody_listens(self):
        with self.hanging("nccl:kernel=always,door=all") as door:
            document = json.loads(door("--json").stdout)
            (row,) = document["doors"]
            self.assertIsNone(document["waited_for"])
            (source,) = row["answer"]["sources"]
            self.assertEqual(source["not_asked_for"], [])
            (stalled,) = source["operations"]
            said = door()
        self.assertEqual((stalled["func"], stalled["group"], stalled["rank"], stalled["sequence"], stalled["reading"], stalled["last"]),
                         ("AllReduce", "0:default_pg", 1, 2, "not_begun", None))
        self.assertGreater(stalled["waited_ns"], 0)
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertRegex(said.stdout, r"AllReduce 2 of 0:default_pg, rank 1: nothing heard for \d+\.\d s; its kernel has not begun\n")

    def test_what_was_not_asked_for_is_said(self):
        for sinks in ((), ("--sink", "alarms")):
            with self.subTest(sinks), self.hanging("nccl", *sinks) as door:
                said = door().stdout
                self.assertIn("0:default_pg, rank 1 of 2: none known to be under way, 3 that may be under way or over, as nothing "
                              "shows their end; last called AllReduce 2, ", said)
                self.assertIn("it is not asked for proxy steps and kernel channels", said)
        with self.hanging("nccl:door=never") as door:
            self.assertIn("NCCL is not asked for operations here, so nothing is known of what hangs", door().stdout)

    def test_a_sink_that_hears_all_tells_the_door_all(self):
        with self.hanging("nccl:kernel=always", "--sink", f"json_lines:{self.lines}") as door:
            self.assertIn("AllReduce 2 of 0:default_pg, rank 1: nothing heard for ", door().stdout)

    def test_another_plugin_comes_behind(self):
        run = self.run_it(FRONT_END, "1", "4", NCCL_PROFILER_PLUGIN=FAKE, FAKE_PLUGIN=FAKE)
        self.assertIn("others 8\n", run.stdout)  # call and operation
        self.assertEqual(len(self.events("nccl.operation")), 4)

    def test_one_in_the_program_itself_comes_behind(self):
        for word in ("STATIC_PLUGIN", "static", "S"):  # as NCCL takes them
            with self.subTest(word):
                run = self.run_it(STATIC, "1", "4", NCCL_PROFILER_PLUGIN=word, FAKE_PLUGIN="")
                self.assertIn("others 8\n", run.stdout)
                self.assertEqual(len(self.events("nccl.operation")), 4)
        run = self.run_it(FRONT_END, "1", "1", NCCL_PROFILER_PLUGIN="STATIC_PLUGIN")
        self.assertIn("'STATIC_PLUGIN' is left out: it has no table of a version from 4 to 6", run.stderr)
        self.assertEqual(len(self.events("nccl.operation")), 1)

    def test_one_that_is_not_there_is_said_in_a_sentence(self):
        run = self.run_it(FRONT_END, "1", "1", NCCL_PROFILER_PLUGIN="/no/such/plugin.so")
        said = [line for line in run.stderr.splitlines() if "/no/such/plugin.so" in line]
        self.assertEqual(len(said), 1, run.stderr)
        self.assertIn("cannot be loaded, and NCCL's events go on without it", said[0])
        self.assertEqual(len(self.events("nccl.operation")), 1)

    def test_none_is_nobody(self):
        run = self.run_it(FRONT_END, "1", "1", NCCL_PROFILER_PLUGIN="none")
        self.assertNotIn("cannot be loaded", run.stderr)

    def test_a_wrong_word_is_refused_before_anything_starts(self):
        run = self.run_it(FRONT_END, "1", "1", source="nccl:kernel=sometimes", status=2, sinks=False)
        self.assertIn("nccl takes kernel=always", run.stderr)
        self.assertEqual(run.stdout, "")

    def test_a_program_whose_nccl_never_asks_is_told_of_in_a_sentence(self):
        run = self.run_it("true")
        (said,) = [line for line in run.stderr.splitlines() if "NCCL never asked" in line]
        self.assertRegex(said, r"^ringmain: true \(pid \d+\): NCCL never asked for ringmain's plugin in this process")
        self.assertIn("NCCL_DEBUG=INFO", said)
        self.assertIn("ringmain doctor", said)
        self.assertNotIn("which has started others", said)
        for command in ((FRONT_END, "1", "1"), ("sh", "-c", "true & exec true"), ("sh", "-c", "(true); true")):
            with self.subTest(command):
                said = self.run_it(*command).stderr.count("NCCL never asked")
                self.assertEqual(said, 0 if command[0] == FRONT_END else 1)

    def test_a_launcher_says_that_those_it_started_say_it_themselves(self):
        run = self.run_it("sh", "-c", f"{FRONT_END} 1 1; {FRONT_END} 1 2; true")
        self.assertEqual(run.stderr.count("front_end (pid "), 2, run.stderr)
        (said,) = [line for line in run.stderr.splitlines() if "NCCL never asked" in line]
        self.assertRegex(said, r"^ringmain: sh \(pid \d+\): NCCL never asked for ringmain's plugin in this process, which has "
                               r"started others: each of those in which it did has a line of its own")
        self.assertNotIn("NCCL_DEBUG", said)

    def test_a_word_that_is_nearly_right_is_guessed(self):
        run = self.run_it(FRONT_END, "1", "1", source="nccl_calls:end", status=2, sinks=False)
        self.assertIn("knows the words ends and tags, and not 'end'; did you mean 'ends'?", run.stderr)

    def test_help_has_each_word_and_examples_that_are_taken(self):
        said = subprocess.run([BINARY, "run", "--help"], capture_output=True, text=True, check=True).stdout
        for word in ("kernel=never", "kernel=always", "steps=never", "door=WORD", "lane=EVENTS", "stall=SECONDS", "ends", "tags"):
            self.assertIn(f"\n  {word} ", said)
        for example in ("nccl:kernel=never,stall=30", "nccl_calls:ends,tags"):
            self.assertIn(f"as in {example}:", said)
            self.run_it("true", source=example)

    def test_a_shared_memory_that_is_full_read_only_or_gone_costs_kernels_and_says_so_once(self):
        # The recorder's files lie there, and what kernel channels take of NCCL.
        places = {
            "full": "mount -t tmpfs -o size=64k none /dev/shm && head -c 64k /dev/zero >/dev/shm/all",
            "read-only": "mount -t tmpfs -o ro none /dev/shm",
            "gone": "mount -t tmpfs none /dev && touch /dev/null"}
        inside = ["unshare", "-rm", "sh", "-c"]
        if not shutil.which("unshare") or subprocess.run([*inside, places["full"]], capture_output=True, check=False).returncode:
            self.skipTest("no file systems can be mounted here: unshare -rm is refused")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RINGMAIN_", "XDG_"))}
        for word, mount in places.items():
            with self.subTest(word):
                self.lines.unlink(missing_ok=True)
                run = subprocess.run(
                    [*inside, f'{mount} && exec "$@"', "-", BINARY, "run", "--source", "nccl", "--flight", "nccl.>", "--summary",
                     "--sink", f"json_lines:{self.lines}", "--", FRONT_END, "1", "3"],
                    capture_output=True, text=True, check=False, env={**env, "XDG_RUNTIME_DIR": "/dev/shm"})
                self.assertEqual(run.returncode, 0, run.stderr)
                unrecorded, summary = run.stderr.splitlines()
                self.assertRegex(unrecorded, r"^ringmain: .* the flight recorder is in memory only, .*/dev/shm/ringmain-flight-\d+ .*; "
                                             r".*name a folder of your own with mode 0700 in RINGMAIN_FLIGHT_DIR\.$")
                self.assertIn(": 13 events, 0 lost: nccl.plugin 4, ", summary)
                self.assertEqual([one["event_sequence"] for one in self.events("nccl.operation")], [0, 1, 2])
                self.assertEqual(self.events("nccl.kernel_channel"), [])
                notices = self.events("nccl.plugin")
                self.assertEqual([one["state"] for one in notices], ["attached", "opened", "closed", "detached"])
                self.assertRegex(notices[0]["reason"], "^kernel channels are left out, as (/dev/shm has less|there is no /dev/shm)")
                last = notices[-1]
                self.assertEqual((last["started"], last["stopped"], last["open"], last["refused"]), (6, 6, 0, 0))

    def test_who_hears_nothing_asks_for_nothing(self):
        run = subprocess.run([BINARY, "run", "--source", "nccl", "--sink", "alarms", "--", FRONT_END, "1", "1"],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, "mask 0, others 0\n")

    def test_the_doctor_says_what_is_in_its_place(self):
        def doctor(**variables):
            run = subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, check=False, env={**env, **variables})
            (found,) = [one for one in json.loads(run.stdout)["findings"] if one["name"] == "NCCL"]
            return found

        env = {key: value for key, value in os.environ.items() if not key.startswith("NCCL_")}
        found = doctor(LD_LIBRARY_PATH=FAKE_NCCL)["found"]
        self.assertRegex(found, r"^a plugin for NCCL 2\.27 and later at /.*/ringmain/libnccl-profiler-ringmain\.so; ")
        self.assertIn(f"NCCL 2.32.3 at {FAKE_NCCL}/libnccl.so.2; ", found)
        self.assertRegex(found, r"/dev/shm has \d+ MiB free")
        old = doctor(LD_LIBRARY_PATH=OLD_NCCL)
        self.assertEqual(old["state"], "note")
        self.assertIn("NCCL 2.26.2 at ", old["found"])
        self.assertIn("take 2.27 or later", old["mend"])
        other = doctor(NCCL_PROFILER_PLUGIN="inspector")
        self.assertEqual(other["state"], "note")
        self.assertIn("NCCL_PROFILER_PLUGIN is set to inspector", other["found"])
        self.assertIn("puts that plugin behind its own", other["mend"])
        self.assertIn("puts that plugin behind its own", doctor(NCCL_PROFILER_PLUGIN="Static")["mend"])
        self.assertNotIn("puts that plugin", doctor(NCCL_PROFILER_PLUGIN="none")["mend"])


if __name__ == "__main__":
    sys.exit(main())
