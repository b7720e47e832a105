#!/usr/bin/env python3
"""Does `ringmain post-mortem` tell what a process published last, wherever SIGKILL found it?

usage: post_mortem_test.py [CASE]     RINGMAIN_BINARY is the program, RINGMAIN_EXAMPLE the example flight_recorder;
                                      RINGMAIN_KILLS says how often a process is killed, 20 unless said
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "engine" / "flight"))
import cases  # noqa: E402
import flight_corpus  # noqa: E402

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
        self.assertLessEqual({event["channel"] for event in ring["events"]}, {"train.step"})  # none, of one killed at its first

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
        self.assertTrue(told.stdout.startswith("no rank: "), "no launcher has said one")
        self.assertIn("operations that were issued and had not ended: 2", told.stdout)
        for group in ("data", "tensor"):
            self.assertIn(f"all_reduce of group '{group}' #20, 4.00 MiB", told.stdout)
            self.assertIn(f"group '{group}': #1 to #20 readable, 20 operations", told.stdout)
        # Each of the two threads has its own, whichever ends before the other begins.
        self.assertEqual(told.stdout.count("20 written = 20 readable + 0 overwritten"), 2)
        self.assertIn("closed in order", told.stdout)
        self.assertIn("train.step #20  step=20  loss=0.05", told.stdout)

    def test_a_picture_has_a_row_for_each_thread_and_marks_what_is_open(self):
        subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
        ring = next(self.folder.iterdir())
        picture = self.ringmain("post-mortem", "--svg", "-", ring).stdout
        texts = [text.firstChild.data for text in xml.dom.minidom.parseString(picture).getElementsByTagName("text")]
        [dump] = self.dumps(ring)
        for thread in {event["thread"] for one in dump["rings"] for event in one["events"]}:
            self.assertTrue([text for text in texts if text.startswith(f"{thread} ")], (thread, texts))
        titles = [title.firstChild.data for title in xml.dom.minidom.parseString(picture).getElementsByTagName("title")]
        for group in ("data", "tensor"):
            self.assertIn(f"all_reduce of '{group}' #20", texts)  # those that are open have their names beside them
            self.assertEqual([titles.count(f"all_reduce of '{group}' #{n}") for n in range(1, 21)], [1] * 20)
        self.assertEqual(titles.count("train.step #20"), 2)
        for words in ("completed", "failed", "had not ended", "its end is not in the file", "another event", "end"):
            self.assertEqual(texts.count(words), 1, words)  # what colours mean, and where the time ends
        self.assertFalse([text for text in texts if text.startswith("rank ")])  # no launcher has said one
        self.assertNotIn("train.step #20", self.ringmain("post-mortem", "--svg", "-", "--last", 0, ring).stdout)
        file = self.folder.parent / "hang.svg"
        run = self.ringmain("post-mortem", "--json", "--svg", file, ring)
        self.assertEqual((json.loads(run.stdout)["file"], file.read_text()), (str(ring), picture))
        self.assertEqual(self.ringmain("post-mortem", "--json", "--svg", "-", ring).returncode, 2)
        subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
        run = self.ringmain("post-mortem", "--svg", file, self.folder)
        self.assertEqual(run.returncode, 2)
        self.assertIn("here are the files of 2; name one file", run.stderr)

    def test_patterns_that_were_asked_for_and_have_no_ring_are_named(self):
        subprocess.run([BINARY, "run", "--flight", "train.*,trian.>,collective.failed,*.step", "--", EXAMPLE, "20"], check=True,
                       capture_output=True, env=self.environment)
        dump = next(one for one in self.dumps() if any(ring["pattern"] == "train.*" for ring in one["rings"]))
        self.assertEqual(list(dump)[-1], "patterns")
        patterns = {one["pattern"]: (one["channels"], one["rings"]) for one in dump["patterns"]}
        self.assertEqual(list(patterns), ["train.*", "trian.>", "collective.failed", "*.step"])
        self.assertEqual(patterns["train.*"], (1, 2))
        self.assertEqual(patterns["trian.>"], (0, 0))
        self.assertEqual(patterns["*.step"], (0, 0))  # the first that matches has the channel
        told = self.ringmain("post-mortem", dump["file"]).stdout
        self.assertIn("nothing matched 'trian.>'\n", told)
        self.assertIn("nothing matched '*.step'\n", told)
        self.assertNotIn("nothing matched 'train.*'", told)

    def test_who_ended_by_exit_reads_like_who_was_killed_and_the_help_says_so(self):
        subprocess.run([BINARY, "run", "--flight", "train.*", "--", EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
        ends = [(dump["process"]["state"], dump["process"]["closed"]) for dump in self.dumps()]
        self.assertEqual(sorted(ends), [("dead", False), ("dead", True)])  # the run's, and the program's own, which it has ended
        self.assertIn("ended by exit() or _exit() is dead and not closed", self.ringmain("post-mortem", "--help").stdout)

    def test_a_sink_gets_all_events_and_each_publishers_in_order(self):
        subprocess.run([EXAMPLE, "100"], check=True, capture_output=True, env=self.environment)
        lines = self.folder.parent / "last.jsonl"
        run = self.ringmain("post-mortem", "--sink", f"json_lines:{lines}", self.folder)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        events = [json.loads(line) for line in lines.read_text().splitlines()]
        steps = [event for event in events if event["channel"] == "train.step"]
        self.assertEqual(len(steps), 200)
        self.assertEqual({event["op"] for event in events if event["channel"] == "collective.issued"}, {"all_reduce"})
        for group in {event["group"] for event in events if event["channel"] == "collective.issued"}:
            times = [event["time_ns"] for event in events if event["channel"] == "collective.issued" and event["group"] == group]
            self.assertEqual(times, sorted(times))
        recorded = [event for dump in self.dumps() for ring in dump["rings"] for event in ring["events"]]
        self.assertEqual(sorted(event["time_ns"] for event in events), sorted(event["time_ns"] for event in recorded))

    def test_analyze_takes_the_rings_of_the_newest_run(self):
        self.environment |= {"RANK": "0", "WORLD_SIZE": "2"}
        files = []
        for _ in range(2):
            subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
            files.append(next(str(file) for file in self.folder.iterdir() if str(file) not in files))
        run = self.ringmain("fr", "analyze", "--json", "--grace", 0, self.folder)
        verdict = json.loads(run.stdout)
        self.assertEqual((verdict["dumps"], verdict["passed_over"]), (1, files[:1]), run.stdout)
        self.assertTrue(self.ringmain("post-mortem", files[0]).stdout.startswith("rank 0 of 2: "))
        run = self.ringmain("fr", "analyze", *files)  # what is named is not passed over
        self.assertEqual(run.returncode, 2)
        self.assertIn("are both of rank 0", run.stderr)
        converted = json.loads(self.ringmain("fr", "convert", "--to", "json", files[0]).stdout)
        self.assertEqual((converted["rank"], sorted(converted["pg_config"])), (0, ["data", "tensor"]))
        self.assertEqual([e["state"] for e in converted["entries"]].count("scheduled"), 2)  # one of each group never ends

    def test_a_file_that_is_too_much_keeps_no_other_from_being_told(self):
        self.environment |= {"RANK": "0", "WORLD_SIZE": "1"}
        subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
        good = next(self.folder.iterdir())
        large = self.folder / "flight-1-1-0.ring"
        large.write_bytes(flight_corpus.file_with_a_ring_of(1 << 25))
        os.truncate(large, 1 << 32)  # a hole, which takes no room on the disk
        for words in (("post-mortem", "--json"), ("fr", "analyze", "--world-size", 1, "--grace", 1e6)):
            run = self.ringmain(*words, self.folder)
            self.assertIn("name it by itself", run.stderr, words)
            self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
            self.assertEqual(run.returncode, 1 if words[0] == "post-mortem" else 2, run.stdout)
            self.assertIn(good.name if words[0] == "post-mortem" else "1 dump,", run.stdout, words)
        if os.environ.get("RINGMAIN_SANITIZED"):
            return  # a sanitizer's own memory counts too
        limit = 2 << 30

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        run = subprocess.run([BINARY, "post-mortem", large, good], capture_output=True, text=True, check=False, preexec_fn=little_memory)
        self.assertEqual((run.returncode, len(run.stderr.splitlines())), (1, 1), run.stderr)
        self.assertIn("not enough memory", run.stderr)
        self.assertIn(str(good), run.stdout)

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

    def test_a_folder_that_may_not_be_read_is_named_with_the_reason(self):
        long = self.folder.parent / ("n" * 300)  # no rights are needed to be refused that
        run = self.ringmain("post-mortem", long)
        self.assertEqual((run.returncode, run.stderr), (1, f"ringmain: {long} cannot be read: File name too long\n"))
        self.environment["RINGMAIN_FLIGHT_DIR"] = str(long)
        for words in ((), ("4711",)):
            run = self.ringmain("post-mortem", *words)
            self.assertEqual((run.returncode, run.stderr), (1, f"ringmain: {long} cannot be read: File name too long\n"))

    def test_a_folder_closed_to_the_user_is_no_empty_one(self):
        subprocess.run([EXAMPLE, "20"], check=True, capture_output=True, env=self.environment)
        self.folder.chmod(0)
        self.addCleanup(self.folder.chmod, 0o700)
        if os.access(self.folder, os.R_OK):
            self.as_another_user()
        else:
            self.check_closed(self.ringmain)

    def as_another_user(self):
        """Root may read all; whoever has no rights is asked in a child."""
        self.folder.parent.chmod(0o755)

        def ringmain(*words):
            return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False, env=self.environment,
                                  user=65534, group=65534, extra_groups=[])
        try:
            ringmain("--version")
        except PermissionError as why:
            self.skipTest(f"another user may not run {BINARY}, or this one may not become another: {why}")
        self.check_closed(ringmain)

    def check_closed(self, ringmain):
        for words in ((self.folder,), (), ("4711",)):
            run = ringmain("post-mortem", *words)
            self.assertEqual((run.returncode, run.stderr), (1, f"ringmain: {self.folder} cannot be read: Permission denied\n"), words)
        inside = self.folder / "flight-1-2-3.ring"
        run = ringmain("post-mortem", inside)
        self.assertEqual((run.returncode, run.stderr), (1, f"ringmain: {inside} cannot be read: Permission denied\n"))

    def test_wrong_calls_are_answered_with_what_to_do(self):
        for words, status, said in (
                (("post-mortem",), 1, "record with: ringmain run --flight"),
                (("post-mortem", "/nowhere"), 1, "there is no file, folder or process '/nowhere'"),
                (("post-mortem", "999999999"), 1, "left no file in"),
                (("post-mortem", "--jsn"), 2, "--json"),
                (("post-mortem", "--last", "few"), 2, "--last is a number"),
                (("post-mortem", "--sink", "json_line:x"), 2, "json_lines"),
                (("post-mortm",), 2, "post-mortem"),
                (("run", "--flight", "a,,b", "--", "true"), 2, "is empty"),
                (("run", "--flight", "own..x", "--", "true"), 2, "'own..x' has an empty word"),
                (("run", "--flight", "a,own.>.x", "--", "true"), 2, "'own.>.x' has a > that is not its last word"),
                (("run", "--flight", "**", "--", "true"), 2, "'**' has a * beside other characters"),
                (("run", "--flight", "x" * 256, "--", "true"), 2, "has more than 255 bytes")):
            run = self.ringmain(*words)
            self.assertEqual(run.returncode, status, (words, run.stderr))
            self.assertIn(said, run.stderr, words)


if __name__ == "__main__":
    sys.exit(cases.main())
