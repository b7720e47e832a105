#!/usr/bin/env python3
"""Does `ringmain run` leave a command as it is, and bring its events to the sinks?

usage: run_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
PROGRAMS = Path(os.environ.get("RINGMAIN_PROGRAMS", Path(BINARY).parent))
PUBLISHER, JOINER, PLAIN, STATIC = (str(PROGRAMS / f"run_{name}") for name in ("publisher", "joiner", "plain", "static"))


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.lines = self.folder / "events.jsonl"
        self.sink = f"json_lines:{self.lines}"

    def run_it(self, *words, status=0, **options):
        run = subprocess.run([BINARY, "run", *map(str, words)], capture_output=True, text=True, timeout=100,
                             check=False, **options)
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        return run

    def refused(self, *words, status, says):
        run = self.run_it(*words, status=status)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertTrue(run.stderr.startswith("ringmain: "), run.stderr)
        self.assertIn(says, run.stderr)

    def events(self, path=None, channel="program.said"):
        """The events of a file, in which every line must be whole."""
        every = [json.loads(line) for line in (path or self.lines).read_text().splitlines()]
        return [event for event in every if event["channel"] == channel]

    def plugin(self, manifest):
        (self.folder / "injected.ringmain-plugin").write_text("abi = 1\nlibrary = injected.so\n" + manifest)
        return {**os.environ, "RINGMAIN_PLUGINS": str(self.folder)}


class UntouchedTest(RunTest):
    def test_every_exit_status_is_the_commands(self):
        for status in range(256):
            self.run_it("--summary", "--", "sh", "-c", f"exit {status}", status=status)

    def test_input_and_output_are_the_commands(self):
        data = bytes(range(256)) * 5000
        run = subprocess.run([BINARY, "run", "--sink", self.sink, "--", "cat"], input=data, capture_output=True,
                             timeout=100, check=True)
        self.assertEqual(run.stdout, data)
        self.assertEqual(run.stderr, b"")

    def test_the_commands_options_are_its_own(self):
        for words in (["--"], []):
            run = self.run_it("--sink", self.sink, *words, PLAIN, "--help", "--sink", "x", "--", "-")
            self.assertEqual(run.stdout, "--help\n--sink\nx\n--\n-\nunset\n")

    def test_a_signal_reaches_the_command_itself(self):
        script = ("import signal, sys, time\n"
                  "def told(number, frame): print('told', number, flush=True); sys.exit(11)\n"
                  "signal.signal(signal.SIGTERM, told); signal.signal(signal.SIGINT, told)\n"
                  "print('ready', flush=True)\n"
                  "while True: time.sleep(1)\n")
        for number in (signal.SIGTERM, signal.SIGINT):
            with subprocess.Popen([BINARY, "run", "--sink", self.sink, "--", sys.executable, "-c", script],
                                  stdout=subprocess.PIPE, text=True) as run:
                self.assertEqual(run.stdout.readline(), "ready\n")
                run.send_signal(number)
                self.assertEqual(run.stdout.readline(), f"told {int(number)}\n")
                self.assertEqual(run.wait(100), 11)

    def test_signals_have_their_defaults_again(self):
        for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGHUP):
            self.run_it("--summary", "--", "sh", "-c", f"kill -{int(number)} $$", status=-number)
        ignored = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
        plain = subprocess.run(["sh", "-c", ignored], capture_output=True, text=True, check=True)
        self.assertEqual(self.run_it("--summary", "--", "sh", "-c", ignored).stdout, plain.stdout)

    def test_a_command_that_is_not_there_or_cannot_be_executed_is_named(self):
        self.refused("--summary", "--", "no-such-command", status=127, says="there is no command 'no-such-command'")
        self.refused("--summary", "--", "/etc/passwd", status=126, says="cannot be executed: Permission denied")
        self.refused("--summary", "--", str(self.folder), status=126, says="cannot be executed: Permission denied")

    def test_a_wrong_call_is_one_sentence_and_starts_nothing(self):
        for words, says in ((["--summary"], "run wants a command"), (["--", "true"], "nobody would hear the events"),
                            (["--sink", "json_line:x", "--", "true"], "did you mean 'json_lines'?"),
                            (["--sink", "json_lines", "--", "true"], "json_lines:FILE"),
                            (["--summary", "--source", "heartbeet", "--", "true"], "did you mean 'heartbeat'?"),
                            (["--summary", "--source", "replay:x", "--", "true"], "use `ringmain replay FILE` instead"),
                            (["--summary", "--source", "json_lines:x", "--", "true"], "'json_lines' is a sink"),
                            (["--sink", "json_lines:a\nb", "--", "true"], "must be one line"),
                            (["--summary", "--source", "heartbeat:never", "--", "true"], "heartbeat wants its period in ms"),
                            (["--summary", "--source", "nvtx:stpe=x", "--", "true"], "nvtx takes step=MESSAGE"),
                            (["--sumary", "--", "true"], "did you mean '--summary'?")):
            with self.subTest(says):
                run = self.run_it(*words, status=2)
                self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
                self.assertIn(says, run.stderr)

    def test_a_program_that_says_nothing_costs_nothing_once_it_has_started(self):
        with subprocess.Popen([BINARY, "run", "--summary", "--sink", self.sink, "--", PLAIN, "wait"], stdin=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as run:
            tasks = Path(f"/proc/{run.pid}/task")

            def switches():
                texts = [(task / "status").read_text() for task in tasks.iterdir()]
                return sum(int(line.split()[1]) for text in texts for line in text.splitlines()
                           if line.startswith("voluntary"))

            # It may take a while to come to rest; what polls every 50 ms never does.
            until = time.monotonic() + 100
            seen = 40
            while seen >= 10 and time.monotonic() < until:
                before = switches()
                time.sleep(2)
                seen = switches() - before if len(list(tasks.iterdir())) >= 4 else 40
            self.assertLess(seen, 10)
            run.stdin.close()
            self.assertEqual(run.wait(100), 0)


class EndsTest(RunTest):
    """However a program ends, what it had published is there, or at least what the sinks had heard."""

    def ends(self, way, status, count):
        self.run_it("--sink", self.sink, "--", PUBLISHER, way, 100, self.lines, status=status)
        self.assertEqual(len(self.events()), count)

    def test_ends_that_can_be_seen_lose_nothing(self):
        for way, status, count in (("returns", 0, 100), ("_exit", 5, 100), ("quick_exit", 6, 100),
                                   ("exit_in_a_handler", 7, 100), ("exec", 0, 150), ("failed_exec", 0, 200)):
            with self.subTest(way):
                self.ends(way, status, count)

    def test_what_the_sinks_had_heard_survives_a_crash_and_a_kill(self):
        self.ends("killed", -signal.SIGKILL, 100)
        self.ends("crash", -signal.SIGSEGV, 100)

    def test_a_forked_child_writes_nothing_twice_and_ends_as_it_wants(self):
        run = self.run_it("--summary", "--sink", self.sink, "--", PUBLISHER, "fork", 100)
        self.assertEqual(len(self.events()), 200)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn("200 events, 0 lost, 200 published in forked children, not heard: program.said 200", run.stderr)

    def test_the_next_run_begins_anew_and_an_unwritable_file_is_said(self):
        for _ in range(2):
            self.ends("returns", 0, 100)
        run = self.run_it("--sink", "json_lines:/nowhere/x", "--", PUBLISHER, "returns", 3)
        self.assertIn("sink json_lines could not open in run_publisher (pid ", run.stderr)


class TreesTest(RunTest):
    def test_the_processes_of_a_pipeline_share_a_file_of_whole_lines(self):
        script = f"{PUBLISHER} returns 500 | cat; {PUBLISHER} returns 700 & {PUBLISHER} returns 900; wait"
        self.run_it("--sink", self.sink, "--", "sh", "-c", script)
        self.assertEqual(len(self.events()), 2100)

    def test_processes_that_go_elsewhere_write_where_the_run_began(self):
        self.run_it("--sink", "json_lines:%p.jsonl", "--", "sh", "-c", f"cd / && {PUBLISHER} returns 5",
                    cwd=self.folder)
        self.assertEqual(sum(len(self.events(path)) for path in self.folder.glob("*.jsonl")), 5)

    def test_each_rank_of_mpirun_has_its_file_and_its_summary(self):
        if shutil.which("mpirun") is None:
            self.skipTest("there is no mpirun (Debian package openmpi-bin)")
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
        trial = subprocess.run([*launcher, "true"], capture_output=True, text=True, timeout=100, check=False)
        if trial.returncode != 0:
            self.skipTest(f"mpirun starts nothing here: {trial.stderr.strip()[:200]}")
        run = self.run_it("--summary", "--sink", f"json_lines:{self.folder}/rank-%r.jsonl", "--", *launcher,
                          PUBLISHER, "returns", 250)
        for rank in range(4):
            self.assertEqual(len(self.events(self.folder / f"rank-{rank}.jsonl")), 250, run.stderr)
            self.assertEqual(sum(f"rank {rank}): 250 events, 0 lost" in line for line in run.stderr.splitlines()), 1,
                             run.stderr)

    def test_a_python_program_has_a_heartbeat(self):
        script = ("import pathlib, subprocess, sys, time\n"
                  "subprocess.run(['true'], check=True)\n"
                  "end = time.monotonic() + 60\n"
                  "while 'heartbeat.beat' not in pathlib.Path(sys.argv[1]).read_text() and time.monotonic() < end:\n"
                  "    time.sleep(0.01)\n")
        run = self.run_it("--summary", "--source", "heartbeat:5", "--sink", self.sink, "--", sys.executable, "-c",
                          script, self.lines)
        self.assertGreaterEqual(len(self.events(channel="heartbeat.beat")), 1)
        self.assertRegex(run.stderr, r"python\S* \(pid \d+\): \d+ events?, 0 lost: heartbeat.beat \d+")

    def test_an_in_process_source_that_cannot_attach_says_why_and_the_program_goes_on(self):
        env = self.plugin("[source injected]\nin_process = yes\n")
        run = self.run_it("--source", "injected", "--summary", "--", PLAIN, env=env)
        self.assertEqual(run.stdout, "unset\n")
        self.assertIn("source injected could not attach to run_plain (pid ", run.stderr)
        self.assertIn("injected.so cannot be loaded: No such file or directory", run.stderr)
        self.assertIn("; injected did not attach", run.stderr)

    def test_a_static_program_runs_and_the_sources_that_miss_it_are_named(self):
        if not Path(STATIC).exists():
            self.skipTest("there is no libc.a to build a static program with")
        run = self.run_it("--source", "heartbeat", "--summary", "--", STATIC)
        self.assertEqual(run.stdout, "unset\n")
        self.assertIn("source heartbeat cannot attach: nothing can be loaded into", run.stderr)
        self.assertIn("it is linked statically", run.stderr)
        for source in ("cuda", "mpi", "nvtx"):
            self.assertIn(f"source {source} cannot attach: nothing can be loaded into",
                          self.run_it("--source", source, "--summary", "--", STATIC).stderr)


class SeamTest(RunTest):
    """What a source's provider says is what the command's environment gets."""

    def test_a_source_sets_and_prepends_and_nothing_is_preloaded_for_it(self):
        env = self.plugin("[source injected]\nset = PLAIN={dir}/x\nprepend = LIST={dir}\n")
        run = self.run_it("--source", "injected", "--summary", "--", "sh", "-c", 'echo "$PLAIN $LIST [$LD_PRELOAD]"',
                          env={**env, "LIST": "/before"})
        self.assertEqual(run.stdout, f"{self.folder}/x {self.folder}:/before []\n")

    def test_an_injected_source_joins_and_its_events_are_heard(self):
        env = self.plugin("[source injected]\n")
        run = self.run_it("--source", "injected", "--summary", "--sink", self.sink, "--", JOINER, env=env)
        self.assertEqual(run.stdout, "joined\n")
        self.assertEqual(len(self.events(channel="program.joined")), 30)
        self.assertIn("run_joiner (pid ", run.stderr)

    def test_places_of_plugins_are_those_of_where_the_run_began(self):
        env = {**self.plugin("[source injected]\n"), "RINGMAIN_PLUGINS": "plugins::./plugins/x"}
        run = self.run_it("--source", "heartbeat", "--summary", "--", "sh", "-c", "cd / && echo $RINGMAIN_PLUGINS", env=env,
                          cwd=self.folder)
        self.assertEqual(run.stdout, f"{self.folder}/plugins:{self.folder}/./plugins/x\n")

    def test_a_run_within_a_run_says_whose_sinks_hear(self):
        inner = self.folder / "inner.jsonl"
        run = self.run_it("--sink", self.sink, "--", "sh", "-c",
                          f"{PUBLISHER} returns 5; {BINARY} run --sink json_lines:{inner} -- {PUBLISHER} returns 7; "
                          f"{PUBLISHER} returns 9")
        self.assertEqual(run.stderr, "ringmain: this run is within another one, whose sinks hear nothing of what it starts\n")
        self.assertEqual((len(self.events()), len(self.events(inner))), (14, 7))

    def test_pytorch_is_asked_for_by_name_and_where_no_source_is_named(self):
        for asked, attached in (([], "torch"), (["--source", "torch"], "torch"), (["--source", "heartbeat"], "no")):
            run = self.run_it("--summary", *asked, "--", "sh", "-c", "echo ${RINGMAIN_ATTACH-no}",
                              env={name: value for name, value in os.environ.items() if name != "RINGMAIN_ATTACH"})
            self.assertEqual(run.stdout, f"{attached}\n", asked)

    def test_an_installation_without_a_watcher_of_mpi_says_so(self):
        libraries = self.folder / "lib"
        libraries.mkdir()
        for path in (Path(BINARY).parent.parent / "lib").glob("libringmain*.so*"):
            shutil.copy(path, libraries, follow_symlinks=False)
        shutil.copytree(Path(BINARY).parent.parent / "lib" / "ringmain", libraries / "ringmain",
                        ignore=lambda folder, names: [name for name in names if "mpi_" in name])
        env = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        none = "no watcher of an MPI was built with this ringmain; install libopenmpi-dev or libmpich-dev"
        self.assertIn(f"source mpi cannot attach: {none}",
                      self.run_it("--source", "mpi", "--summary", "--", "true", env=env).stderr)
        check = subprocess.run([BINARY, "providers", "--check"], capture_output=True, text=True, check=False, env=env)
        self.assertEqual((check.returncode, none in check.stderr), (1, True), check.stderr)
        doctor = json.loads(subprocess.run([BINARY, "doctor", "--json"], capture_output=True, text=True, check=False,
                                           env=env).stdout)
        (found,) = [one for one in doctor["findings"] if one["name"] == "MPI"] if "findings" in doctor else (doctor,)
        self.assertIn("Open MPI cannot: its watcher was not built; MPICH cannot", str(found))

    def test_one_that_was_not_asked_for_stays_out(self):
        self.assertEqual(self.run_it("--summary", "--", JOINER).stdout, "not asked for\n")
        self.assertEqual(subprocess.run([JOINER], capture_output=True, text=True, check=True).stdout, "not asked for\n")

    def test_a_child_that_is_forked_while_another_thread_joins_waits_for_nobody(self):
        run = subprocess.run([JOINER, "forks_meanwhile"], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "0\n"), run.stderr)

    def test_one_that_came_in_vain_says_so(self):
        env = self.plugin("[source injected]\n")
        run = self.run_it("--source", "injected", "--summary", "--", JOINER, "in_vain", env=env)
        self.assertIn("source injected could not attach to run_joiner (pid ", run.stderr)
        self.assertIn("the program has no ranges\n", run.stderr)


if __name__ == "__main__":
    sys.exit(main())
