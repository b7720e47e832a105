#!/usr/bin/env python3
"""Where do the flight recorder's files lie, what is there after which end of a command, and what is said where nothing was recorded?

usage: flight_run_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the example flight_recorder in $RINGMAIN_EXAMPLE,
       and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

BINARY = os.environ["RINGMAIN_BINARY"]
EXAMPLE = os.environ.get("RINGMAIN_EXAMPLE", "")
PUBLISHER = str(Path(os.environ.get("RINGMAIN_PROGRAMS", Path(BINARY).parent)) / "run_publisher")
UNUSED = "ringmain: --flight recorded nothing: no process of this command used ringmain on this machine;"
UNMATCHED = "ringmain: --flight recorded nothing: processes of this command used ringmain, and published nothing on a channel that 'elsewhere.*'"


class FlightRunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class PlaceTest(FlightRunTest):
    def doctor(self, **variables):
        """What it says of the flight recorder's files, and how to mend it."""
        without = {name: value for name, value in os.environ.items() if name not in ("RINGMAIN_FLIGHT_DIR", "XDG_RUNTIME_DIR")}
        said = json.loads(subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, check=False,
                                           env={**without, **variables}).stdout)
        finding = next(finding for finding in said["findings"] if finding["name"] == "flight recorder")
        return finding["found"], finding.get("mend", "")

    def test_who_empties_the_flight_recorders_folder_is_said_however_it_is_named(self):
        stays = "set RINGMAIN_FLIGHT_DIR to a folder that stays"
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            link = self.folder / "link"
            link.symlink_to(memory)
            for folder in (f"{memory}/flight", f"{link}/flight"):
                found, mend = self.doctor(RINGMAIN_FLIGHT_DIR=folder)
                self.assertIn(f"files go to {folder}; until the machine restarts, unless a job's epilog", found)
                self.assertIn(stays, mend)
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        found, mend = self.doctor(XDG_RUNTIME_DIR=str(runtime))
        self.assertIn(f"files go to {runtime}/ringmain-flight; until you log out", found)
        self.assertIn(stays, mend)
        kind = subprocess.run(["stat", "-f", "-c", "%T", self.folder], capture_output=True, text=True, check=True).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            self.skipTest(f"{self.folder} is in memory")
        found, mend = self.doctor(RINGMAIN_FLIGHT_DIR=str(self.folder / "disk"))
        self.assertIn(f"files go to {self.folder / 'disk'}; room for", found)
        self.assertEqual(mend, "")


class SentenceTest(FlightRunTest):
    """Where no process recorded anything the command's own says so, once; where one did, nobody does."""

    def said(self, *command, flight="train.*", status=0, folder=None, more=()):
        """On standard error. Nothing of the run itself is left beside the files of processes."""
        folder = folder or self.folder / "flight"
        run = subprocess.run([BINARY, "run", "--flight", flight, *more, "--", *command], capture_output=True, text=True, check=False,
                             env={**os.environ, "RINGMAIN_FLIGHT_DIR": str(folder)}, timeout=100)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertEqual(list(folder.glob("*.run")), [])
        return run.stderr

    def check_one(self, said, sentence):
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn(sentence, said)

    def test_who_never_used_ringmain_is_told_what_is_missing(self):
        for command, status in ((("true",), 0), (("sh", "-c", "exit 3"), 3), ((sys.executable, "-c", "import os; os._exit(4)"), 4),
                                (("sh", "-c", "true; exec sh -c 'true; true'"), 0)):
            with self.subTest(command=command):
                self.check_one(self.said(*command, status=status), UNUSED)
        self.check_one(self.said("true", more=["--source", "heartbeat:100000"], flight="elsewhere.*"), UNMATCHED)

    def test_who_recorded_hears_nothing_whichever_process_it_was_and_however_it_ended(self):
        other = self.folder / "other"
        for script in (EXAMPLE + " 5", "exec " + EXAMPLE + " 5", EXAMPLE + " 5; exec true", "(true; sh -c '" + EXAMPLE + " 5 & wait'); exit 0",
                       f"RINGMAIN_FLIGHT_DIR={other} {EXAMPLE} 5; exit 0", f"{EXAMPLE} 5; rm $RINGMAIN_FLIGHT_DIR/*.ring",
                       EXAMPLE + " 5 >/dev/null; RINGMAIN_FLIGHT_DIR=/nowhere/at/all true"):
            with self.subTest(script=script):
                self.assertEqual(self.said("sh", "-c", script), "")
        lines = self.folder / "lines"
        lines.write_text("\n" * 50)  # what it waits for before it is killed
        for end in ("killed", "crash", "_exit"):
            said = self.said("sh", "-c", f"{PUBLISHER} {end} 50 {lines}; exit 0", flight="program.*")
            self.assertNotIn("ringmain", said, end)

    def test_patterns_that_nothing_matches_are_told_apart(self):
        self.check_one(self.said("sh", "-c", f"{EXAMPLE} 5; {EXAMPLE} 5", flight="elsewhere.*"), UNMATCHED)
        self.check_one(self.said(EXAMPLE, "5", flight="elsewhere.*"), UNMATCHED)

    def test_what_is_nearly_the_name_of_a_known_channel_is_said_at_the_start(self):
        begin = "ringmain: --flight: 'collectve.*' records nothing, unless the program has a channel of its own that it matches; "
        self.check_one(self.said(EXAMPLE, "5", flight="train.*,collectve.*"), begin + "did you mean 'collective.*'?\n")
        for wrong, right in (("trian.step", "train.step"), ("collective", "collective.>"), ("cuda.evnt_record", "cuda.event_record"),
                             ("hartbeat.>", "heartbeat.>"), ("compile.*.*.*.*", None), ("own.>", None), ("program.*", None)):
            with self.subTest(wrong):
                said = self.said(EXAMPLE, "5", flight=f"train.*,{wrong}")
                self.assertIn(f"; did you mean '{right}'?\n", said) if right else self.assertEqual(said, "")

    def test_what_is_in_memory_has_one_sentence_and_no_second(self):
        folder = self.folder / "open"
        folder.mkdir()
        folder.chmod(0o777)
        said = self.said("sh", "-c", f"{EXAMPLE} 5 2>/dev/null", folder=folder)
        self.assertEqual(said, "")
        said = self.said(EXAMPLE, "5", folder=folder)
        self.assertNotIn("recorded nothing", said)
        self.assertIn("is in memory only", said)

    def test_a_command_that_is_left_out_hears_nothing(self):
        self.assertEqual(self.said("true", more=["--except", "true"]), "")

    def test_what_a_killed_command_left_goes_with_the_next_file(self):
        self.assertEqual(self.said("sh", "-c", f"{EXAMPLE} 5"), "")
        run = subprocess.run([BINARY, "run", "--flight", "train.*", "--", "sh", "-c", f"{EXAMPLE} 5; kill -9 $$"], check=False,
                             capture_output=True, env={**os.environ, "RINGMAIN_FLIGHT_DIR": str(self.folder / "flight")})
        self.assertEqual(run.returncode, -9)
        self.assertEqual(len(list((self.folder / "flight").glob("*.run"))), 1)
        self.assertEqual(self.said("sh", "-c", f"{EXAMPLE} 5"), "")  # looks that none is left


class EndsTest(FlightRunTest):
    """What a process published is in its file, and adds up, after ends of which it knows nothing."""

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "RINGMAIN_FLIGHT_DIR": str(self.folder / "flight")}

    def start(self, *before):
        """The example below a run, once it publishes."""
        process = subprocess.Popen([*before, BINARY, "run", "--flight", "train.*,collective.>", "--", EXAMPLE, "100000000000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertIn("post-mortem", process.stdout.readline())
        return process

    def recorded(self, pid):
        """How many records there are of it, of which all are readable or counted."""
        run = subprocess.run([BINARY, "post-mortem", "--json", "--last", "1000000", str(pid)], capture_output=True, text=True, check=False,
                             env=self.environment)
        self.assertEqual(run.returncode, 0, run.stderr)
        written = 0
        for dump in map(json.loads, run.stdout.splitlines()):
            self.assertEqual((dump["process"]["state"], dump["process"]["closed"]), ("dead", False))
            for ring in dump["rings"]:
                self.assertEqual(ring["written"], ring["readable"] + ring["overwritten"])
                self.assertEqual((ring["unreadable"], len(ring["events"])), (0, ring["readable"]))
                written += ring["written"]
        return written

    def published(self, process):
        """Waits until something is recorded."""
        while process.poll() is None:
            run = subprocess.run([BINARY, "post-mortem", "--json", "--last", "0", str(process.pid)], capture_output=True, text=True,
                                 check=True, env=self.environment)
            if any(ring["written"] for dump in map(json.loads, run.stdout.splitlines()) for ring in dump["rings"]):
                return

    def test_a_crash_and_an_abort_leave_all_that_was_recorded(self):
        for end in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            with self.subTest(end=end):
                process = self.start("sh", "-c", 'ulimit -c 0; exec "$@"', "sh")
                self.published(process)
                process.send_signal(end)
                self.assertEqual(process.wait(60), -end)
                self.assertGreater(self.recorded(process.pid), 0)

    def test_of_each_group_the_oldest_that_can_be_read_is_told_where_rings_have_wrapped(self):
        steps = 20000
        subprocess.run([BINARY, "run", "--flight", "collective.>", "--", EXAMPLE, str(steps)], check=True, capture_output=True,
                       env=self.environment)
        file = next(file for file in (self.folder / "flight").glob("*-0.ring"))  # the run's own
        [dump] = map(json.loads, subprocess.run([BINARY, "post-mortem", "--json", "--last", "1000000", file], check=True, capture_output=True,
                                                text=True, env=self.environment).stdout.splitlines())
        told = subprocess.run([BINARY, "post-mortem", file], check=True, capture_output=True, text=True, env=self.environment).stdout
        for name in ("data", "tensor"):
            seen = [event["event"]["sequence"] for ring in dump["rings"] for event in ring["events"]
                    if event["channel"].startswith("collective.") and event["event"].get("group") == name]
            self.assertEqual(max(seen), steps)
            self.assertGreater(min(seen), 1)
            self.assertIn(f"group '{name}': #{min(seen)} to #{steps} readable", told.replace(",", ""))

    def group(self):
        """A control group with little memory, and the shell's words that enter it."""
        for root, limit in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
            made = root / f"ringmain-test-{os.getpid()}"
            try:
                made.mkdir()
            except OSError:
                continue
            self.addCleanup(made.rmdir)
            try:
                (made / limit).write_text(str(64 << 20))
                if (made / "memory.oom.group").exists():
                    (made / "memory.oom.group").write_text("1")
                return f'echo $$ > {made / "cgroup.procs"} && '
            except OSError:
                continue
        self.skipTest("this user may not make a control group with a limit of memory")

    def test_the_oom_killer_leaves_all_that_was_recorded(self):
        enter = self.group()
        process = self.start("sh", "-c", enter + 'echo 1000 > /proc/self/oom_score_adj; exec "$@"', "sh")
        self.published(process)
        # Together they take more than there is, and each of them less than what is added to the one that is to go.
        takes_some = "a = [bytearray(b'x' * (1 << 20)) for _ in range(28)]\nimport signal\nsignal.pause()"
        for _ in range(4):
            hog = subprocess.Popen(["sh", "-c", enter + 'exec "$@"', "sh", sys.executable, "-c", takes_some], stderr=subprocess.DEVNULL)
            self.addCleanup(hog.wait)
            self.addCleanup(hog.kill)
        self.assertEqual(process.wait(60), -signal.SIGKILL)
        self.assertGreater(self.recorded(process.pid), 0)


if __name__ == "__main__":
    sys.exit(main())
