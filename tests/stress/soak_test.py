#!/usr/bin/env python3
"""Does a soak go on from what the one before it has left, and refuse what it did not leave?

usage: soak_test.py RINGMAIN_SOAK
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

SOAK = ""
SHORT = ("--minutes", "0.02")  # 1.2 s
SUMS = ("runs", "seconds", "events", "heard", "subscriptions")  # what the shortest has some of, however slow it is


def soak(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([SOAK, *arguments], capture_output=True, text=True, timeout=100)


def last(run: subprocess.CompletedProcess) -> dict:
    return json.loads(run.stdout.splitlines()[-1])


class SoakTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, "figures")

    def one_run(self) -> dict:
        run = soak(*SHORT, "--json", "--resume", str(self.file))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return last(run)

    def expect_refused(self, run: subprocess.CompletedProcess, *words: str):
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def test_the_second_run_goes_on_from_the_figures_of_the_first(self):
        first = self.one_run()
        self.assertEqual(first["runs"], 1)
        self.assertTrue(all(first[name] > 0 for name in SUMS), first)
        second = self.one_run()
        self.assertEqual(second["runs"], 2)
        for name in SUMS:
            self.assertGreater(second[name], first[name], name)
        self.assertEqual(sorted(p.name for p in self.file.parent.iterdir()), ["figures"])

    def test_a_signal_ends_it_with_its_figures_and_its_file(self):
        run = subprocess.Popen([SOAK, "--minutes", "60", "--json", "--resume", str(self.file)],
                               stdout=subprocess.PIPE, text=True)
        while not self.file.exists():  # written before the first scenario, after the signal mask is set
            self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        output, _ = run.communicate(timeout=100)
        self.assertEqual(run.returncode, 128 + signal.SIGINT, output)
        figures = json.loads(output.splitlines()[-1])
        self.assertEqual((figures["runs"], figures["faults"]), (1, 0))
        self.assertIn("\nruns 1\n", self.file.read_text())

    def test_a_file_that_no_soak_left_is_refused_and_kept(self):
        self.one_run()
        good = self.file.read_text()
        version = good.split()[1]
        older = good.replace(version, "0.0.1", 1)
        more = good.replace("\nevents ", "\nevents 1", 1)
        for text, word in ((older, "0.0.1"), (more, "damaged"), (good[:-9], "damaged"), (good[:40], "damaged"),
                           (good + "x 1\n", "damaged"), ("", "another file"), ("a diary\n", "another file")):
            self.file.write_text(text)
            self.expect_refused(soak(*SHORT, "--resume", str(self.file)), str(self.file), word)
            self.assertEqual(self.file.read_text(), text)
        self.file.write_text(good)
        self.one_run()

    def test_a_file_that_cannot_be_written_is_refused_at_once(self):
        self.expect_refused(soak(*SHORT, "--resume", str(self.file / "below")), "cannot be")
        self.expect_refused(soak(*SHORT, "--resume", str(self.file.parent)), "another file")
        self.expect_refused(soak(*SHORT, "--resume", ""), "--resume")

    def test_people_are_told_what_is_left(self):
        run = soak(*SHORT)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"10\^9 (in [0-9.]+ (min|h)|reached)")
        self.assertRegex(run.stdout, r"10\^7 (in [0-9.]+ (min|h)|reached)")
        self.assertIn(" 0 faults", run.stdout)


if __name__ == "__main__":
    SOAK = os.path.abspath(sys.argv.pop(1))
    unittest.main()
