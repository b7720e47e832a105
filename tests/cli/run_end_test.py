#!/usr/bin/env python3
"""Does a process below `ringmain run` end by itself, whatever its sinks' files do, and is each loss said and counted?

usage: run_end_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import re
import shutil
import signal
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
PUBLISHER, NEIGHBOUR = str(PROGRAMS / "run_publisher"), str(PROGRAMS / "run_neighbour")
MANY = 5000  # more lines than a pipe holds


def names_of_threads(pid):
    for one in Path(f"/proc/{pid}/task").iterdir():
        try:
            yield (one / "comm").read_text()
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended meanwhile


class LossTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.lines = self.folder / "events.jsonl"

    def publish(self, *before, count=MANY, way="returns", status=0, sink=None, more=(), end_s=None, **options):
        """What it said on standard error, without the lines of `before`."""
        variables = {**os.environ, **({"RINGMAIN_END_S": end_s} if end_s else {})}
        run = subprocess.run([*before, BINARY, "run", "--summary", "--sink", sink or f"json_lines:{self.lines}",
                              *(word for another in more for word in ("--sink", another)), "--", PUBLISHER, way,
                              str(count)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=variables,
                             timeout=100, check=False, **options)
        self.assertEqual(run.returncode, status, run.stderr)
        return run.stderr

    def lost(self, said):
        return int(re.search(r"events?, (\d+) lost", said).group(1))

    def whole_lines(self):
        text = self.lines.read_text()
        self.assertTrue(text == "" or text.endswith("\n"), text[-200:])
        return [json.loads(line) for line in text.splitlines()]

    def test_what_a_full_disk_does_not_take_is_said_and_counted(self):
        # A limit of the size of files is a small disk; the signal that comes with it reaches nobody.
        said = self.publish("sh", "-c", 'ulimit -f 64; exec "$@"', "sh", count=MANY)
        self.assertIn(f"cannot write to {self.lines}: File too large", said)
        written = [event for event in self.whole_lines() if event["channel"] == "program.said"]
        self.assertGreater(len(written), 0)
        self.assertEqual([event["number"] for event in written], list(range(len(written))))
        self.assertEqual(self.lost(said), MANY - len(written), said)

    def test_a_full_device_takes_nothing(self):
        said = self.publish(count=100, sink="json_lines:/dev/full")
        self.assertIn("No space left on device; free some space there (100 lines were not written)", said)
        self.assertEqual(self.lost(said), 100)

    def test_nothing_is_lost_where_all_was_written(self):
        said = self.publish()
        self.assertEqual(self.lost(said), 0)
        self.assertEqual(len(self.whole_lines()), MANY)

    def test_a_pipe_that_nobody_reads_holds_up_no_start_and_no_end(self):
        os.mkfifo(self.lines)
        said = self.publish(count=100, end_s="0.5")
        self.assertRegex(said, "100 events were not written within 0.5 s; where that is too short")
        self.assertEqual(self.lost(said), 100)

    def test_a_pipe_whose_reader_has_stopped_holds_up_no_end(self):
        os.mkfifo(self.lines)
        reader = os.open(self.lines, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        said = self.publish(end_s="0.5")
        self.assertIn("events were not written within 0.5 s", said)
        # What is in the pipe may be read by somebody yet, but was not known to be written whole.
        self.assertGreater(self.lost(said), 0)

    def test_no_handler_of_the_programs_runs_while_its_exit_waits(self):
        os.mkfifo(self.lines)
        with subprocess.Popen([BINARY, "run", "--sink", f"json_lines:{self.lines}", "--", PUBLISHER, "_exit_with_a_handler", "1"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, "RINGMAIN_END_S": "60"},
                              text=True) as run:
            self.assertEqual(run.stdout.readline(), "leaving\n")
            # From here on the main thread blocks signals while it waits for the sink, and never else.
            blocked = 0
            while not blocked >> (signal.SIGALRM - 1) & 1:
                self.assertIsNone(run.poll(), "it waited for no reader")
                status = Path(f"/proc/{run.pid}/task/{run.pid}/status").read_text()
                blocked = int(re.search(r"^SigBlk:\s*(\w+)", status, re.MULTILINE)[1], 16)
            run.send_signal(signal.SIGALRM)
            self.lines.read_text()
            self.assertEqual(run.stdout.read(), "")
            self.assertEqual(run.wait(100), 5)

    def test_of_many_execs_that_fail_the_first_waits_for_a_sink_that_blocks(self):
        # Two hundred times the limit would be longer than publish() waits.
        os.mkfifo(self.lines)
        reader = os.open(self.lines, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        said = self.publish(way="failed_execs", end_s="1")
        self.assertIn("events were not written within 1 s", said)

    def test_an_exec_waits_again_for_a_sink_that_has_moved(self):
        os.mkfifo(self.lines)
        read = self.folder / "read"
        reader = os.open(self.lines, os.O_RDONLY | os.O_NONBLOCK)
        with subprocess.Popen([BINARY, "run", "--sink", f"json_lines:{self.lines}", "--", PUBLISHER, "failed_exec_then_exec",
                               str(MANY), str(read)], stdout=subprocess.PIPE, env={**os.environ, "RINGMAIN_END_S": "4"},
                              stdin=subprocess.DEVNULL) as run:
            self.assertEqual(run.stdout.readline(), b"failed\n")
            os.set_blocking(reader, True)
            with os.fdopen(reader) as lines:
                numbers = []
                for line in lines:
                    event = json.loads(line)
                    if event["channel"] != "program.said":
                        continue
                    numbers.append(event["number"])
                    if len(numbers) == MANY:
                        read.write_text("all\n")
            self.assertEqual(run.wait(100), 0)
        self.assertEqual(numbers, [*range(MANY), *range(MANY)])

    def test_what_one_sink_lost_is_counted_once_beside_another_of_its_kind(self):
        pipe, lines = f"json_lines:{self.folder / 'pipe'}", f"json_lines:{self.lines}"
        os.mkfifo(self.folder / "pipe")
        for first, second in ((pipe, lines), (lines, pipe)):
            with self.subTest(first=first):
                said = self.publish(end_s="0.5", sink=first, more=[second])
                self.assertEqual(len(self.whole_lines()), MANY)
                self.assertEqual(re.findall(r"(\d+) events were not written", said), [str(MANY)], said)
                self.assertEqual(self.lost(said), MANY)

    def test_a_reader_who_comes_late_hears_all(self):
        os.mkfifo(self.lines)
        with subprocess.Popen(["sh", "-c", f"sleep 0.2; exec cat {self.lines}"], stdout=subprocess.PIPE) as reader:
            said = self.publish(count=100, end_s="60")
            self.assertEqual(len(reader.stdout.read().splitlines()), 100)
        self.assertEqual(self.lost(said), 0)

    def test_a_reader_who_has_gone_raises_no_signal(self):
        os.mkfifo(self.lines)
        with subprocess.Popen(["sh", "-c", f"head -c 1 {self.lines}"], stdout=subprocess.DEVNULL):
            said = self.publish(end_s="60")
        self.assertIn("Broken pipe", said)
        self.assertGreater(self.lost(said), 0)

    def test_wrong_seconds_are_said(self):
        self.assertIn("RINGMAIN_END_S wants seconds, such as 0.5, and not 'soon'; it is 2",
                      self.publish(count=1, end_s="soon"))
        self.assertIn("not '0'; it is 2", self.publish(count=1, end_s="0"))

    def test_a_sink_on_standard_output_is_no_part_of_the_programs_stream(self):
        with open("/dev/full", "w") as full:
            said = self.publish(count=9, way="looks_at_its_output", status=4, sink="json_lines:-", stdout=full)
        self.assertEqual(self.lost(said), 9, said)
        with tempfile.TemporaryFile("w+") as output:
            self.publish(count=9, way="looks_at_its_output", status=4, sink="json_lines:-", stdout=output)
            output.seek(0)
            *lines, last = output.read().splitlines()
        self.assertEqual((len([json.loads(line) for line in lines]), last), (9, "held "))


class SentenceTest(unittest.TestCase):
    def summary(self, *words, status=0, **options):
        run = subprocess.run([BINARY, "run", "--summary", "--source", "heartbeat:3", "--", *words], text=True, timeout=100,
                             stdin=subprocess.DEVNULL, check=False, **{"capture_output": True, **options})
        self.assertEqual(run.returncode, status, run)
        return run

    def test_the_summary_comes_though_the_program_closed_its_standard_error(self):
        for word in ("closes_its_output_at_exit", "closes_numbers_at_exit", "close_from_3", "close_all_and_exit"):
            with self.subTest(word):
                status = {"close_from_3": 4, "close_all_and_exit": 5}.get(word, 0)
                self.assertRegex(self.summary(NEIGHBOUR, word, status=status).stderr, r"events?, 0 lost")

    def test_the_summary_comes_however_the_main_thread_leaves(self):
        for word, status in (("becomes_a_daemon", 0), ("exits_by_call", 7), ("exits_by_call_before_another", 0),
                             ("exits_strictly", 4), ("exits_alone", 0), ("exits_alone_before_another", 0),
                             ("is_joined", 5), ("is_cancelled", 0)):
            with self.subTest(word):
                said = self.summary(NEIGHBOUR, word, "7", status=status).stderr
                self.assertEqual(len(re.findall("events?, 0 lost", said)), 1, said)

    def test_a_standard_error_that_nobody_reads_changes_no_status(self):
        for word, status in (("returns", 0), ("exits", 7), ("quick_exits", 6), ("exits_without_flush", 3)):
            with self.subTest(word):
                read, write = os.pipe()
                os.close(read)
                try:
                    self.summary(NEIGHBOUR, word, str(status), status=status, stderr=write, stdout=subprocess.DEVNULL,
                                 capture_output=False)
                finally:
                    os.close(write)

    def without_own_table(self, script, **options):
        """What a shell said below a run, where the system gives our threads no descriptors of their own; the file theirs."""
        with tempfile.TemporaryDirectory() as folder:
            options = {"capture_output": True, **options}
            run = subprocess.run([BINARY, "run", "--summary", "--source", "heartbeat:3", "--", NEIGHBOUR, "without_own_table",
                                  "sh", "-c", script], text=True, timeout=100, stdin=subprocess.DEVNULL, check=False,
                                 cwd=folder, env={**os.environ, "N": NEIGHBOUR}, **options)
            theirs = Path(folder, "theirs")
            return run, theirs.read_text() if theirs.exists() else ""

    def test_no_sentence_lands_in_a_file_that_the_program_has_at_2_where_threads_have_no_table(self):
        run, theirs = self.without_own_table("exec 2>theirs; echo mine >&2; exit 3")
        self.assertEqual((run.returncode, theirs), (3, "mine\n"))
        self.assertRegex(run.stderr, r"sh \(pid \d+\): \d+ events?, 0 lost")

    def test_nor_where_there_was_no_standard_error_at_the_start(self):
        # The shell's: sh itself begins without one.
        run, theirs = self.without_own_table("exec 2>&-; exec sh -c 'exec 2>theirs; echo mine >&2; exit 3'")
        self.assertEqual((run.returncode, theirs), (3, "mine\n"), run.stderr)

    def test_nor_where_the_program_closed_all_else(self):
        run, theirs = self.without_own_table(
            "exec python3 -c 'import os; os.dup2(os.open(\"theirs\", os.O_WRONLY | os.O_CREAT), 2); os.closerange(3, 5000)'")
        self.assertEqual((run.returncode, theirs), (0, ""))

    def test_it_speaks_where_only_one_of_its_descriptors_is_left(self):
        for word, status in (("closes_numbers_at_exit", 0), ("close_range_3", 0)):
            with self.subTest(word):
                run, _ = self.without_own_table(f"exec $N {word}")
                self.assertEqual(run.returncode, status)
                self.assertRegex(run.stderr, r"run_neighbour \(pid \d+\): \d+ events?")

    def test_a_process_that_closes_everything_ends(self):
        for word, status in (("close_from_3", 4), ("close_from_3_at_once", 0), ("close_range_3", 0), ("close_each", 0)):
            with self.subTest(word):
                self.summary(NEIGHBOUR, word, status=status)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv") and shutil.which("prlimit"), "needs root and setpriv")
    def test_a_program_that_may_have_no_thread_runs_unheard(self):
        if subprocess.run(["setpriv", "--reuid", "4242", "--clear-groups", "test", "-x", BINARY], check=False).returncode:
            self.skipTest("another user cannot reach the program here")
        run = subprocess.run(["prlimit", "--nproc=1", "setpriv", "--reuid", "4242", "--clear-groups", "--", BINARY, "run",
                              "--source", "heartbeat:3", "--summary", "--", "/bin/sleep", "0"], capture_output=True,
                             text=True, timeout=100, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("nothing is heard from sleep: ringmain: the system gave the bus not one thread", run.stderr)

    def test_threads_are_ours_by_name(self):
        with subprocess.Popen([BINARY, "run", "--summary", "--sink", "json_lines:/dev/null", "--", "sh", "-c",
                               "read x; exit 3"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            comms = []
            # The last two that are started. Each names itself first of all, and may be seen before that.
            while not {"ringmain:sink\n", "ringmain:main\n"} <= set(comms):
                self.assertIsNone(run.poll())
                comms = list(names_of_threads(run.pid))
            foreign = [name for name in comms if not name.startswith("ringmain")]
            self.assertEqual(len(foreign), 1, comms)  # its own
            run.stdin.close()
            self.assertEqual(run.wait(100), 3)


if __name__ == "__main__":
    sys.exit(main())
