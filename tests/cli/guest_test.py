#!/usr/bin/env python3
"""Does `ringmain run` keep the rules of a guest where a program has little memory, loads in its own way, or is run by tools?

usage: guest_test.py TESTCASE, with the program in $RINGMAIN_BINARY and the test programs in $RINGMAIN_PROGRAMS
"""

import ctypes.util
import os
import re
import resource
import shutil
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from run_test import BINARY, JOINER, PROGRAMS, PUBLISHER, RunTest, main

NEIGHBOUR, SCARCE, LOADER = (str(PROGRAMS / f"run_{name}") for name in ("neighbour", "scarce", "loader"))
LOADED = str(PROGRAMS / "librun_loaded.so")
LIBRARIES = Path(BINARY).parents[1] / "lib"
# What the preloaded library takes the place of.
INTERPOSED = {"_exit", "_Exit", "execve", "execv", "execvpe", "execvp", "fexecve", "execveat", "execl", "execlp", "execle",
              "daemon", "pthread_exit", "pthread_cancel"}


class MemoryTest(RunTest):
    def runs(self, words, **options):
        return subprocess.run([BINARY, "run", "--summary", "--source", "heartbeat:3", "--sink", self.sink, "--", *words],
                              capture_output=True, text=True, timeout=100, check=False, **options)

    def scarce(self, first_refused):
        return first_refused, self.runs([SCARCE], env={**os.environ, "SCARCE_FROM": str(first_refused)})

    def test_a_program_goes_on_whichever_allocation_of_our_threads_fails_and_all_after_it(self):
        _, run = self.scarce(10**9)
        self.assertEqual(run.returncode, 3, run.stderr)
        asked = int(run.stdout)
        self.assertGreater(asked, 50)
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
            for first_refused, run in pool.map(self.scarce, range(1, asked + 20, 3)):
                with self.subTest(first_refused):
                    self.assertEqual(run.returncode, 3, run.stderr)
                    self.assertTrue(all(line.startswith("ringmain: ") for line in run.stderr.splitlines()), run.stderr)

    def test_a_small_address_space_ends_no_program(self):
        loaded = 0
        for mib in range(8, 64):
            def small(limit=mib << 20):
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

            if subprocess.run([BINARY, "--version"], preexec_fn=small, capture_output=True, check=False).returncode != 0:
                continue  # the system cannot even start ringmain
            loaded += 1
            run = self.runs([NEIGHBOUR, "returns", "3"], preexec_fn=small)
            with self.subTest(mib):
                self.assertEqual((run.returncode, run.stdout), (3, "held"), run.stderr)
        self.assertGreater(loaded, 20)


class LoaderTest(RunTest):
    def load(self, way):
        run = self.run_it("--summary", "--sink", self.sink, "--", LOADER, way, LOADED, "100", status=5)
        self.assertEqual(run.stdout, "42\n")
        return len(self.events(channel="program.loaded")) if self.lines.exists() else 0

    def test_a_library_that_binds_to_its_own_names_first_is_heard(self):
        self.assertEqual(self.load("plain"), 100)
        self.lines.unlink()
        self.assertEqual(self.load("deepbind"), 100)

    def test_a_library_in_a_namespace_of_its_own_works_unheard(self):
        self.assertEqual(self.load("namespace"), 0)

    @unittest.skipUnless(shutil.which("nm"), "needs nm")
    def test_what_is_preloaded_exports_what_it_takes_the_place_of_and_its_own_names(self):
        for library in ("libringmain_run.so", "libringmain_registry.so", "libringmain.so"):
            said = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", LIBRARIES / library], capture_output=True,
                                  text=True, check=True).stdout
            names = {line.split()[0].partition("@")[0] for line in said.splitlines()}
            self.assertGreater(len(names), 5)
            # _Z: C++; ours have the namespace ringmain in them, be it in what they are a template of.
            strange = {name for name in names if "ringmain" not in name.lower()}  # versions are names as well: RINGMAIN_…
            with self.subTest(library):
                self.assertEqual(strange - (INTERPOSED if library == "libringmain_run.so" else set()), set())
                if library == "libringmain_run.so":
                    self.assertEqual(INTERPOSED - names, set())


class ToolsTest(RunTest):
    @unittest.skipUnless(shutil.which("valgrind"), "needs valgrind")
    def test_a_program_under_valgrind_is_heard_and_has_no_fault_of_ours(self):
        valgrind = ["valgrind", "-q", "--error-exitcode=77"]
        ours = [BINARY, "run", "--source", "heartbeat:20", "--sink", self.sink, "--"]
        for before, behind in ((ours, valgrind), ([*valgrind, "--trace-children=yes", *ours], [])):
            with self.subTest(before=before[0]):
                self.lines.unlink(missing_ok=True)
                run = subprocess.run([*before, *behind, PUBLISHER, "returns", "500"], capture_output=True, text=True,
                                     timeout=200, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(len(self.events()), 500)

    def test_other_allocators_are_preloaded_beside_it(self):
        found = [found for name in ("jemalloc", "tcmalloc_minimal") if (found := ctypes.util.find_library(name))]
        if not found:
            self.skipTest("needs libjemalloc or libtcmalloc_minimal")
        for allocator in found:
            for command, events in (([PUBLISHER, "returns", "500"], 500), ([PUBLISHER, "_exit", "300"], 300),
                                    (["sh", "-c", f"{PUBLISHER} exec 70"], 120), ([PUBLISHER, "fork", "200"], 400)):
                with self.subTest(allocator, command=command):
                    self.lines.unlink(missing_ok=True)
                    env = {**os.environ, "LD_PRELOAD": allocator}
                    run = self.run_it("--sink", self.sink, "--", *command, env=env, status=5 if "_exit" in command else 0)
                    self.assertEqual(run.stderr, "")
                    self.assertEqual(len(self.events()), events)
            preloads = self.run_it("--summary", "--", "sh", "-c", "echo $LD_PRELOAD", env={**os.environ, "LD_PRELOAD": allocator})
            self.assertTrue(preloads.stdout.endswith(f":{allocator}\n"), preloads.stdout)


class PlaceTest(RunTest):
    def test_numbers_are_written_and_read_the_same_where_a_comma_is_the_point(self):
        if not shutil.which("localedef"):
            self.skipTest("needs localedef")
        made = subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", self.folder / "tr_TR.UTF-8"], capture_output=True,
                              check=False)
        if made.returncode != 0:
            self.skipTest("needs the sources of the locale tr_TR")
        os.mkfifo(self.folder / "pipe")  # so that there is a sentence with a number at the end
        env = {**self.plugin("[source injected]\n"), "LOCPATH": str(self.folder), "LC_ALL": "tr_TR.UTF-8", "RINGMAIN_END_S": "0.25"}
        heard = ["--source", "injected", "--sink", self.sink]
        said = self.run_it(*heard, "--sink", f"json_lines:{self.folder / 'pipe'}", "--", JOINER, env=env).stderr
        self.assertNotIn("RINGMAIN_END_S wants", said)
        self.assertIn("30 events were not written within 0.25 s", said)
        self.assertEqual([event["half"] for event in self.events(channel="program.joined")], [0.5] * 30)

    def test_a_folder_that_cannot_be_written_is_named_and_the_program_runs(self):
        self.lines.touch()
        if os.geteuid() != 0:
            self.folder.chmod(0o555)
            self.addCleanup(self.folder.chmod, 0o755)
            before, why = [], "Permission denied"
        else:
            before = ["unshare", "-m", "sh", "-c", f'mount --bind {self.folder} {self.folder} && '
                      f'mount -o remount,ro,bind {self.folder} && exec "$@"', "sh"]
            why = "Read-only file system"
            if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True, check=False).returncode != 0:
                self.skipTest("no folder can be mounted read-only here")
        for name in ("new.jsonl", *(["events.jsonl"] if before else [])):
            run = subprocess.run([*before, BINARY, "run", "--sink", f"json_lines:{self.folder / name}", "--", PUBLISHER,
                                  "_exit", "10"], capture_output=True, text=True, timeout=100, check=False, cwd=self.folder)
            self.assertEqual(run.returncode, 5, run.stderr)
            self.assertEqual(len(run.stderr.splitlines()), 2, run.stderr)
            self.assertRegex(run.stderr, rf"\Aringmain: .*{re.escape(name)}.*{why}\nringmain: .*: 10 events were not written\n")


if __name__ == "__main__":
    sys.exit(main())
