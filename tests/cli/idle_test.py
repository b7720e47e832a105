#!/usr/bin/env python3
"""Is a process below `ringmain run` free of our threads and files until it uses its bus, and heard from then on?

usage: idle_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import re
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
IDLER = str(PROGRAMS / "run_idler")


class IdleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.lines = self.folder / "events.jsonl"

    def run_it(self, *steps, file=None, before=(), status=0, says=""):
        """What it printed."""
        file = file or self.lines
        run = subprocess.run([*before, BINARY, "run", "--sink", f"json_lines:{file}", "--", IDLER, *steps], text=True,
                             capture_output=True, timeout=100, check=False, cwd=self.folder, env={**os.environ, "FILE": str(file)})
        self.assertEqual(run.returncode, status, run.stderr)
        if says:
            self.assertRegex(run.stderr, says)
        else:
            self.assertEqual(run.stderr, "")
        return run.stdout.split()

    def heard(self, file=None):
        every = [json.loads(line) for line in (file or self.lines).read_text().splitlines()]
        return sum(event["channel"] == "program.said" for event in every)

    def test_a_program_that_uses_no_bus_has_one_thread_and_an_empty_file(self):
        self.assertEqual(self.run_it("threads", "file"), ["1", "0"])
        self.assertEqual(self.lines.read_text(), "")

    def test_one_that_does_has_more_from_then_on_and_is_heard(self):
        first, later = self.run_it("threads", "say", "threads")
        self.assertEqual(first, "1")
        self.assertGreater(int(later), 1)
        self.assertEqual(self.heard(), 10)

    def test_the_file_of_an_earlier_run_is_emptied_at_the_start(self):
        self.lines.write_text("of an earlier run\n")
        os.utime(self.lines, (1, 1))
        self.assertEqual(self.run_it("file"), ["0"])

    def test_a_file_that_cannot_be_written_is_said_at_the_start_and_once(self):
        for steps in ((), ("say",)):
            self.run_it(*steps, file="/nowhere/x", says=r"\Aringmain: sink json_lines could not open in run_idler \(pid \d+\): "
                        r"cannot open /nowhere/x for writing: No such file or directory; make its folder first\n"
                        + (r"ringmain: sink json_lines of run_idler \(pid \d+\): 10 events were not written\n" if steps else "") + r"\Z")

    def test_whatever_the_program_did_before_it_is_heard(self):
        for step in ("chdir", "clearenv", "close_from_3", "umask", "threads"):
            with self.subTest(step):
                self.lines.unlink(missing_ok=True)
                self.run_it(step, "say")
                self.assertEqual(self.heard(), 10)

    def test_an_environment_that_was_cleared_empties_no_file(self):
        script = f'{IDLER} say; {IDLER} clearenv say'
        subprocess.run([BINARY, "run", "--sink", f"json_lines:{self.lines}", "--", "sh", "-c", script], check=True, timeout=100)
        self.assertEqual(self.heard(), 20)

    def test_the_first_use_may_be_in_any_thread_and_in_many_at_once(self):
        self.run_it("thread_say")
        self.assertEqual(self.heard(), 10)
        for _ in range(5):
            self.lines.unlink()
            self.run_it("many_say")
            self.assertEqual(self.heard(), 80)

    def test_a_child_that_is_forked_before_the_first_use_is_heard(self):
        self.assertEqual(self.run_it("fork_say", "threads", "fork_say", "say", "fork_say"), ["1"])
        self.assertEqual(self.heard(), 30)

    def test_such_a_child_ends_when_its_main_thread_has_left(self):
        self.run_it("fork_leave")
        self.assertEqual(self.heard(), 10)

    def test_a_child_that_is_forked_before_has_a_file_of_its_own(self):
        self.run_it("fork_say", "say", file=self.folder / "of-%p.jsonl")
        self.assertEqual([self.heard(path) for path in self.folder.glob("of-*.jsonl")], [10, 10])

    def test_what_was_lost_is_said(self):
        for steps, why in ((("remove", "say"), "is no longer the file that it was at the program's start"),
                           (("nofile", "say"), "Too many open files")):
            with self.subTest(why):
                self.run_it(*steps, says=rf"could not open in run_idler \(pid \d+\): .*{why}[^\n]*\n"
                            r"ringmain: sink json_lines of run_idler \(pid \d+\): 10 events were not written\n\Z")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_a_root_that_was_changed_gets_no_file(self):
        (self.folder / "root").mkdir()
        self.run_it("chdir", "chroot", "say")  # to the same root
        self.assertEqual(self.heard(), 10)
        self.lines.unlink()
        self.run_it("chroot", "say", says="is no longer the file that it was at the program's start")
        self.assertEqual(list(self.folder.rglob("*.jsonl")), [self.lines])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user_writes_no_file_of_the_first_one(self):
        os.chmod(self.folder, 0o755)
        self.run_it("setuid", "say", says="events were not written")
        self.assertEqual(self.heard(), 0)

    def test_sentences_go_to_no_file_that_took_the_place_of_standard_error(self):
        self.run_it("replace_stderr", "remove", "say")
        self.assertEqual((self.folder / "taken").read_text(), "")

    def test_a_program_that_must_have_one_thread_has_it(self):
        alone = subprocess.run([IDLER, "namespace"], capture_output=True, check=False)
        if alone.returncode != 0:
            self.skipTest("there are no user namespaces here")
        self.run_it("namespace")

    def test_what_is_asked_for_is_there_from_the_start(self):
        for asked in (["--source", "heartbeat:100"], ["--summary"]):
            run = subprocess.run([BINARY, "run", *asked, "--sink", f"json_lines:{self.lines}", "--", IDLER, "threads"], text=True,
                                 capture_output=True, timeout=100, check=True)
            self.assertGreater(int(run.stdout), 1)
        self.assertTrue(re.search(r"run_idler \(pid \d+\): 0 events, 0 lost\n", run.stderr), run.stderr)


if __name__ == "__main__":
    sys.exit(main())
