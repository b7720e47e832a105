#!/usr/bin/env python3
"""Does `ringmain door` tell where each thread of Python is, also while one of them holds the GIL?

usage: door_python_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import json
import os
import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main
from door_case import BINARY, SANITIZED, DoorCase

# What each of them lends: docs/door.md.
WALKS = not (3, 13) <= sys.version_info[:2] <= (3, 14)

HANGS = """
import ctypes, faulthandler, os, sys, threading

def waits_for_a_lock(lock):
    lock.acquire()

def holds_the_gil(path):
    return ctypes.PyDLL(None).open(path.encode(), os.O_RDONLY)

lock = threading.Lock()
lock.acquire()
threading.Thread(target=waits_for_a_lock, args=(lock,), daemon=True).start()
faulthandler.dump_traceback_later(1000000)
print("ready", flush=True)
holds_the_gil(sys.argv[1])
print("done", flush=True)
"""


@unittest.skipIf(SANITIZED, "nothing can be preloaded into a sanitized program")
class PythonTest(DoorCase):
    """A program in Python that uses no bus."""

    def setUp(self):
        super().setUp()
        self.fifo = self.folder / "fifo"
        os.mkfifo(self.fifo)
        (self.folder / "hangs.py").write_text(HANGS)
        self.process = self.start(BINARY, "run", "--door", "--", sys.executable, self.folder / "hangs.py", self.fifo)

    def stacks(self):
        """Once its main thread is in the call that holds the GIL."""
        while True:
            said = self.said("stacks", self.process.pid)
            if "holds_the_gil" in said:
                return said
            time.sleep(0.01)

    def of_process(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        threads = sorted(os.listdir(f"/proc/{self.process.pid}/task"))
        return threads, re.findall(r"^Sig(?:Cgt|Ign):.*$", status, re.M), re.findall(r"^(?:Shd|Sig)Pnd:.*$", status, re.M)

    @unittest.skipUnless(WALKS, "this Python does not lend the function")
    def test_stacks_come_while_a_thread_holds_the_gil_and_nothing_is_touched(self):
        said = self.stacks()
        before = self.of_process()
        for _ in range(20):
            said = self.stacks()
        self.assertEqual(self.of_process(), before)  # no thread, no handler, no signal; faulthandler's own thread is there
        self.assertRegex(said, rf"^Process {self.process.pid} \(\S+\), Python 3\.")
        self.assertRegex(said, r'File "[^"]*hangs.py", line \d+ in waits_for_a_lock')
        self.assertRegex(said, r'File "[^"]*hangs.py", line \d+ in holds_the_gil\n  File "[^"]*hangs.py", line \d+ in <module>')
        self.assertIsNone(self.process.poll())
        self.fifo.write_text("")  # now the call returns, and with it the GIL
        self.assertEqual(self.process.stdout.readline(), "done\n")
        self.assertEqual(self.process.wait(), 0)
        self.assertEqual(self.sockets(), [])

    @unittest.skipUnless(WALKS, "this Python does not lend the function")
    def test_a_timer_of_faulthandlers_is_due_as_if_nobody_had_asked(self):
        told = self.folder / "told"
        (self.folder / "timed.py").write_text(HANGS.replace("later(1000000)", f"later(1, file=open({str(told)!r}, 'w'))"))
        process = self.start(BINARY, "run", "--door", "--", sys.executable, self.folder / "timed.py", self.fifo)
        while "holds_the_gil" not in told.read_text():
            self.said("stacks", process.pid)
            self.assertIsNone(process.poll())
        self.assertIn("Timeout (0:00:01)!", told.read_text())

    @unittest.skipUnless(WALKS, "this Python does not lend the function")
    def test_the_stacks_of_all_processes_come_while_each_holds_its_gil(self):
        second = self.folder / "second"
        os.mkfifo(second)
        other = self.start(BINARY, "run", "--door", "--", sys.executable, self.folder / "hangs.py", second)
        answers = {}
        while not all("holds_the_gil" in (answers.get(pid) or "") for pid in (self.process.pid, other.pid)):
            run = self.ringmain("door", "stacks", "--all", "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            answers = {row["pid"]: row["answer"] for row in json.loads(run.stdout)["doors"]}
        self.assertEqual(set(answers), {self.process.pid, other.pid})
        for pid, said in answers.items():
            self.assertIn(f"Process {pid} (", said)
            self.assertIn("waits_for_a_lock", said)

    @unittest.skipIf(WALKS, "this Python lends the function")
    def test_a_python_that_does_not_lend_the_function_says_so(self):
        self.assertIn("does not lend the function", self.complained("stacks", self.process.pid))

    def test_stats_and_dump_are_answered_too(self):
        self.assertEqual(json.loads(self.said("stats", self.process.pid))["buses"], [])
        self.assertIn("nothing is recorded", self.complained("dump", self.process.pid))


if __name__ == "__main__":
    sys.exit(main())
