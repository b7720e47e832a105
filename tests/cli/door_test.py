#!/usr/bin/env python3
"""Does `ringmain door` tell what a process says of itself: one that runs, forks, becomes another, or is killed?

usage: door_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main
from door_case import BINARY, SANITIZED, DoorCase

PROGRAMS = Path(os.environ.get("RINGMAIN_PROGRAMS", Path(BINARY).parent))
DOORED = str(PROGRAMS / "run_doored")
# It has one table of descriptors for all threads, and lets no forked child have threads.
BY_TSAN = os.environ.get("RINGMAIN_SANITIZED") == "thread"


class ProgramTest(DoorCase):
    """A program in C++."""

    def doored(self, *before, **environment):
        process = self.start(*before, DOORED, **environment)
        self.assertEqual(self.tell(process, "say"), "done")
        return process

    def test_stats_have_its_channels_with_their_figures(self):
        process = self.doored()
        document = json.loads(self.said("stats", process.pid))
        self.assertEqual((document["pid"], document["program"], document["rank"]), (process.pid, "run_doored", None))
        [channel] = [c for c in document["buses"][0]["channels"] if c["name"] == "program.said"]
        self.assertEqual((channel["offered"], channel["accepted"]), (0, 0))  # nobody listens
        self.assertTrue(document["buses"][0]["housekeeper"]["running"])

    @unittest.skipIf(BY_TSAN, "nothing can be preloaded into a sanitized program")
    def test_a_bus_that_is_recorded_says_where_and_how_many_it_was_offered(self):
        process = self.doored(BINARY, "run", "--door", "--flight", "program.*", "--")
        [bus] = json.loads(self.said("stats", process.pid))["buses"]
        [channel] = [c for c in bus["channels"] if c["name"] == "program.said"]
        self.assertEqual((channel["offered"], channel["delivered"]), (10, 10))
        dump = json.loads(self.said("dump", process.pid))
        self.assertEqual(dump["files"], [])
        self.assertEqual(dump["recordings"], bus["recordings"])
        read = json.loads(self.ringmain("post-mortem", "--json", *dump["recordings"]).stdout)
        self.assertEqual(sum(ring["written"] for ring in read["rings"]), 10)

    def test_without_a_recorder_or_python_there_is_a_sentence(self):
        process = self.doored()
        self.assertIn("nothing is recorded in this process", self.complained("dump", process.pid))
        self.assertIn("there is no Python in this process", self.complained("stacks", process.pid))

    def test_unasked_there_is_no_thread_and_no_file(self):
        process = self.doored(RINGMAIN_DOOR="")
        threads = int(self.tell(process, "threads"))
        self.assertEqual(self.sockets(), [])
        self.assertIn("has no door in", self.complained("stats", process.pid))
        other = self.doored()
        self.assertEqual(int(self.tell(other, "threads")), threads + 1)

    def test_a_value_that_means_nothing_is_said_and_the_program_runs(self):
        run = subprocess.run([DOORED], input="say\n", capture_output=True, text=True, check=False,
                             env={**self.environment, "RINGMAIN_DOOR": "yes"})
        self.assertEqual(run.stdout, "ready\ndone\n")
        self.assertIn("RINGMAIN_DOOR: 'yes' is neither 1 nor a folder's whole path", run.stderr)

    def test_a_folder_that_others_may_write_to_is_refused_with_a_sentence(self):
        self.doors.mkdir()
        self.doors.chmod(0o777)
        run = subprocess.run([DOORED], input="say\n", capture_output=True, text=True, check=False, env=self.environment)
        self.assertEqual((run.returncode, run.stdout), (0, "ready\ndone\n"))
        self.assertIn("others may write to it", run.stderr)
        self.assertEqual(self.sockets(), [])

    @unittest.skipIf(BY_TSAN, "ThreadSanitizer knows one table of descriptors only")
    def test_it_survives_a_program_that_closes_all_descriptors(self):
        process = self.doored()
        self.assertEqual(self.tell(process, "close"), "done")
        self.assertEqual(json.loads(self.said("who", process.pid))["pid"], process.pid)

    @unittest.skipIf(BY_TSAN, "ThreadSanitizer knows one table of descriptors only")
    def test_the_program_has_no_descriptor_more(self):
        with_door, without = self.doored(), self.doored(RINGMAIN_DOOR="0")
        self.assertEqual(self.tell(with_door, "fds"), self.tell(without, "fds"))

    @unittest.skipIf(BY_TSAN, "ThreadSanitizer knows one table of descriptors only")
    @unittest.skipIf(SANITIZED, "sanitizers look at memory through a pipe, for which there is no descriptor")
    def test_one_that_may_have_few_descriptors_answers_all_or_says_why_it_cannot(self):
        def limited(descriptors):
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
        for few in (4, 7):
            run = subprocess.run([DOORED], input="say\n", capture_output=True, text=True, check=False, env=self.environment,
                                 preexec_fn=limited(few))
            self.assertEqual((run.returncode, run.stdout), (0, "ready\ndone\n"))
            self.assertEqual(run.stderr, f"ringmain: RINGMAIN_DOOR: there is no door here: the process may have {few} descriptors "
                                         "only (ulimit -n), and a door needs 8\n")
            self.assertEqual(self.sockets(), [])
        process = self.doored("sh", "-c", 'ulimit -S -n 8; exec "$@"', "sh")
        self.assertEqual(json.loads(self.said("stats", process.pid))["pid"], process.pid)
        self.assertIn("nothing is recorded", self.complained("dump", process.pid))
        self.assertIn("there is no Python", self.complained("stacks", process.pid))

    @unittest.skipIf(BY_TSAN, "ThreadSanitizer knows one table of descriptors only")
    @unittest.skipIf(SANITIZED, "sanitizers look at memory through a pipe, for which there is no descriptor")
    def test_one_whose_limit_of_descriptors_falls_and_rises_answers_again(self):
        process = self.doored()
        before = resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (0, resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]))
        self.assertIn("does not answer within the time", self.complained("who", process.pid, "--timeout", "0.2"))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, before)
        self.assertEqual(json.loads(self.said("who", process.pid))["pid"], process.pid)

    @unittest.skipIf(BY_TSAN, "ThreadSanitizer lets no forked child have threads")
    def test_a_forked_child_takes_nothing_away_and_one_with_a_bus_of_its_own_has_a_door(self):
        process = self.doored()
        self.assertEqual(self.tell(process, "fork"), "ended 0")
        self.assertEqual(json.loads(self.said("who", process.pid))["pid"], process.pid)
        child = int(self.tell(process, "child"))
        self.assertEqual(json.loads(self.said("who", child))["pid"], child)
        self.assertEqual(len(self.sockets()), 2)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(process.stdout.readline(), f"ended {int(signal.SIGKILL)}\n")
        self.assertEqual(json.loads(self.said("who"))["pid"], process.pid)  # the only one that answers

    def test_what_it_becomes_by_an_exec_has_the_same_door_anew(self):
        process = self.doored()
        before = self.sockets()
        self.assertEqual(self.tell(process, "exec"), "ready")
        self.assertIn("has no door", self.complained("who", process.pid))  # until it has a bus again
        self.tell(process, "say")
        self.assertEqual(self.sockets(), before)
        self.assertEqual(json.loads(self.said("who", process.pid))["pid"], process.pid)

    def test_nothing_is_left_at_an_end_that_can_be_seen(self):
        process = self.doored()
        self.assertEqual(len(self.sockets()), 1)
        process.stdin.close()
        process.wait()
        self.assertEqual(self.sockets(), [])

    @unittest.skipIf(SANITIZED, "nothing can be preloaded into a sanitized program")
    def test_nothing_is_left_at_an_underscore_exit_in_a_run(self):
        process = self.doored(BINARY, "run", "--door", "--")
        self.assertEqual(len(self.sockets()), 1)
        self.tell(process, "_exit")
        process.wait()
        self.assertEqual(self.sockets(), [])

    def test_what_a_killed_process_left_answers_nobody_and_goes_with_the_next_door(self):
        process = self.doored()
        [left] = self.sockets()
        process.kill()
        process.wait()
        self.assertIn(f"there is no process {process.pid}", self.complained("who", process.pid))
        self.assertIn("its process has ended", self.complained("who", left))
        self.assertIn("there is no door in", self.complained())
        other = self.doored()
        self.assertNotIn(left, self.sockets())
        self.assertEqual(json.loads(self.said("who"))["pid"], other.pid)

    def test_the_program_itself_opens_and_closes_one(self):
        process = self.doored(RINGMAIN_DOOR="0")
        folder = self.folder / "runtime"
        folder.mkdir()
        process = self.doored(RINGMAIN_DOOR="0", XDG_RUNTIME_DIR=str(folder))
        self.assertEqual(self.tell(process, "door"), "done")
        path = self.tell(process, "path")
        self.assertEqual(Path(path).parent, folder / "ringmain-door")
        self.assertEqual(json.loads(self.said("who", path))["pid"], process.pid)
        self.assertEqual(json.loads(self.said("who", "--folder", folder / "ringmain-door"))["pid"], process.pid)
        self.tell(process, "shut")
        self.assertFalse(Path(path).exists())

    def test_several_doors_are_listed_and_asked_by_name_or_all(self):
        first, second = self.doored(RANK="3", WORLD_SIZE="8"), self.doored()
        lines = sorted(self.said().splitlines(), key=lambda line: int(line.split()[0]))
        self.assertEqual([int(line.split()[0]) for line in lines], sorted([first.pid, second.pid]))
        self.assertEqual(sorted(re.split("  +", line.strip())[1] for line in lines), ["no rank", "rank 3"])
        self.assertIn("there are 2 doors", self.complained("stats"))
        rows = json.loads(self.said("who", "--all", "--json"))["doors"]
        self.assertEqual({row["pid"] for row in rows}, {first.pid, second.pid})
        self.assertEqual({row["answer"]["rank"] for row in rows}, {3, None})
        run = self.ringmain("door", "stacks", "--all", "--json")
        self.assertEqual(run.returncode, 1)
        for row in json.loads(run.stdout)["doors"]:
            self.assertIsNone(row["answer"])
            self.assertIn("no Python", row["error"])

    def test_doors_are_asked_side_by_side(self):
        """Each answers once all have been asked."""
        self.doors.mkdir(mode=0o700)
        all_asked = threading.Barrier(3, timeout=60)
        for number in range(3):
            self.listen(self.doors / f"door-{os.getpid()}-1-{number}.sock", b"{}\n\n", all_asked.wait)
        rows = json.loads(self.said("who", "--all", "--json", "--timeout", "100"))["doors"]
        self.assertEqual([row["answer"] for row in rows], [{}] * 3)

    def test_what_is_no_door_is_said_and_gets_nothing_onto_a_terminal(self):
        """Whoever listens at a socket of the user's may answer anything."""
        self.doors.mkdir(mode=0o700)
        answers = [b'{broken\n\n', b'{"pid":1}{"x":2}\n\n', b"\x1b[31m\xff\xfe\0\n\n", b"[]\n\n", b'{"program": "\xff"}\n\n',
                   b'{"program":"\\u001b[31mx\\ny\xc2\x9b","rank":"q\\u0007","pid":"z\\r"}\n\n', b"ringmain: no\x1b[2J\n\n",
                   b"A" * (2 << 20)]
        for number, answer in enumerate(answers):
            self.listen(self.doors / f"door-{os.getpid()}-1-{number}.sock", answer)
        run = self.ringmain("door")
        lines = run.stdout.splitlines()
        self.assertEqual((run.returncode, len(lines), run.stderr), (1, len(answers), ""))
        for line in lines[:5]:
            self.assertIn("is no JSON, so no door of ringmain's", line)
        self.assertRegex(lines[5], r"^ *z\\u000d  rank q\\u0007 \\u001b\[31mx\\u000ay\\u009b  ")
        self.assertIn(r"no\u001b[2J", lines[6])
        self.assertIn("says more than any door does", lines[7])
        run = self.ringmain("door", "who", "--all", "--json")
        self.assertEqual([row["answer"] is None for row in json.loads(run.stdout)["doors"]], [True] * 5 + [False] + [True] * 2)
        for word in ("stats", "stacks", "help"):
            run = self.ringmain("door", word, "--all")
            self.assertNotRegex(run.stdout + run.stderr, r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", word)
            json.loads(self.ringmain("door", word, "--all", "--json").stdout)

    def test_a_wrong_call_is_one_sentence(self):
        for words, sentence in [(["stat"], "neither a word that doors answer"), (["1"], "say what is to be asked"),
                                (["stats", "dump"], "one word at a time"), (["stats", "1", "--all"], "name none beside it"),
                                (["stats", "--timeout", "0"], "--timeout is a number of seconds")]:
            self.assertIn(sentence, self.complained(*words, status=2))

    def test_a_stopped_process_is_not_waited_for_for_ever_and_answers_when_it_goes_on(self):
        process = self.doored()
        process.send_signal(signal.SIGSTOP)
        self.assertIn("does not answer within the time", self.complained("who", process.pid, "--timeout", "0.2"))
        process.send_signal(signal.SIGCONT)
        self.assertEqual(json.loads(self.said("who", process.pid))["pid"], process.pid)

    @unittest.skipUnless(os.geteuid() == 0, "only root can ask as another user")
    def test_another_user_is_let_in_by_nobody_though_the_socket_is_open_to_all(self):
        process = self.doored()
        socket_path = self.doors / self.sockets()[0]
        for folder, mode in ((self.folder, 0o711), (self.doors, 0o711), (socket_path, 0o666)):
            folder.chmod(mode)
        asks = ("import socket, sys\n"
                "peer = socket.socket(socket.AF_UNIX)\n"
                "peer.connect(sys.argv[1])\n"
                "try:\n    peer.sendall(b'who\\n')\n    print(repr(peer.recv(1000)))\n"
                "except OSError as error:\n    print(type(error).__name__)\n")
        for user, said in ((65534, ("b''", "ConnectionResetError", "BrokenPipeError")), (0, None)):
            run = subprocess.run(["/usr/bin/env", "python3", "-c", asks, socket_path], capture_output=True, text=True, check=False,
                                 user=user, cwd="/")
            if run.returncode != 0:
                self.skipTest(f"another user has no Python here: {run.stderr.splitlines()[-1:]}")
            if said is None:
                self.assertIn(str(process.pid), run.stdout)
            else:
                self.assertIn(run.stdout.strip(), said)
        self.assertEqual(json.loads(self.said("who", process.pid))["pid"], process.pid)

    def test_the_doctor_says_where_doors_are(self):
        self.doored()
        findings = {f["name"]: f for f in json.loads(self.ringmain("doctor", "--json").stdout)["findings"]}
        self.assertEqual(findings["door"]["state"], "good")
        self.assertIn(f"sockets go to {self.doors}; 1 process has one open", findings["door"]["found"])
        self.assertEqual(len(self.sockets()), 1)


if __name__ == "__main__":
    sys.exit(main())
