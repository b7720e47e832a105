#!/usr/bin/env python3
"""What does `ringmain run` do with programs in which a preload does not work?

usage: hindrance_test.py TESTCASE, with the program in $RINGMAIN_BINARY, the test programs in $RINGMAIN_PROGRAMS and those
built with sanitizers in $RINGMAIN_SANITIZED_PROGRAMS
"""

import os
import random
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path

from run_test import BINARY, PLAIN, PUBLISHER, RunTest, main

SANITIZED = Path(os.environ.get("RINGMAIN_SANITIZED_PROGRAMS", "."))
# Address-space randomization that the runtimes of some compilers do not take on new kernels.
FIXED = ["setarch", os.uname().machine, "-R"] if shutil.which("setarch") else []


class HindrancesTest(RunTest):
    def sanitized(self, name):
        """The program, if it could be built and runs here without us."""
        program = SANITIZED / name
        if not program.exists() or program.stat().st_size == 0:
            return None
        bare = subprocess.run([*FIXED, program], capture_output=True, text=True, timeout=100, check=False)
        return program if (bare.returncode, bare.stdout) == (3, "ran 1\n") else None

    def heard(self, *command, status, source="heartbeat:5", **options):
        run = subprocess.run([*FIXED, BINARY, "run", "--source", source, "--sink", self.sink, "--", *map(str, command)],
                             capture_output=True, text=True, timeout=100, check=False, **options)
        self.assertEqual(run.returncode, status, run.stderr + run.stdout)
        self.assertEqual(run.stdout, "ran 1\n" if status == 3 else "")
        return run, len(self.events(channel="heartbeat.beat")) if self.lines.exists() else 0

    def test_a_program_with_address_sanitizer_is_heard_and_its_faults_are_found(self):
        for name in ("gcc_address", "clang_address", "gcc_leak", "gcc_undefined"):
            program = self.sanitized(name)
            if program is None:
                continue
            waits = f"{program} awaits {self.lines}"
            for command in (waits.split(), ["sh", "-c", f"{waits}; exit $?"]):
                with self.subTest(name, command=command):
                    self.lines.unlink(missing_ok=True)
                    run, events = self.heard(*command, status=3)
                    self.assertEqual(run.stderr, "")
                    self.assertGreater(events, 0)
            if name.endswith("_address"):
                run, _ = self.heard(program, "fault", status=1)
                self.assertIn("heap-use-after-free", run.stderr)

    def test_the_programs_own_options_for_it_are_kept(self):
        program = self.sanitized("gcc_address")
        if program is None:
            self.skipTest("no program with AddressSanitizer could be built or runs here")
        run, _ = self.heard(program, "fault", status=44, env={**os.environ, "ASAN_OPTIONS": "exitcode=44"})
        self.assertIn("heap-use-after-free", run.stderr)

    def test_what_other_sanitizers_look_at_is_left_alone_and_said(self):
        for name, said in (("gcc_thread", "ThreadSanitizer"), ("clang_thread", "ThreadSanitizer"),
                           ("clang_memory", "MemorySanitizer")):
            program = self.sanitized(name)
            if program is None:
                continue
            for command in ([program], ["sh", "-c", f"{program}; exit $?"]):
                with self.subTest(name, command=command):
                    run, _ = self.heard(*command, status=3)
                    self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
                    self.assertIn(f"it was built with {said}", run.stderr)

    def changed(self, name, *edits):
        """A copy of a program with bytes replaced."""
        data = bytearray(Path(PLAIN).read_bytes())
        for at, new in edits:
            data[at:at + len(new)] = new
        path = self.folder / name
        path.write_bytes(data)
        path.chmod(0o755)
        return path

    def test_programs_of_another_c_library_or_processor_get_a_sentence_and_no_preload(self):
        data = Path(PLAIN).read_bytes()
        loader = data.find(b"/lib64/ld-linux")
        if loader < 0:
            self.skipTest("no known loader here")
        for path, says in ((self.changed("musl", (loader, b"/lib/ld-musl-x86_64.so.1\0")), "it uses the C library musl"),
                           (self.changed("foreign", (18, struct.pack("<H", 0x1234))), "it was built for another kind of processor")):
            run = subprocess.run([BINARY, "run", "--summary", "--", path], capture_output=True, text=True, timeout=100,
                                 check=False)
            self.assertNotEqual(run.returncode, 0)  # as without us: it cannot run here
            self.assertIn(f"nothing can be loaded into {path}: {says}", run.stderr)

    def test_a_script_is_what_it_is_run_by(self):
        program = self.sanitized("gcc_thread")
        if program is None:
            self.skipTest("no program with ThreadSanitizer could be built or runs here")
        script = self.folder / "script"
        script.write_text(f"#!{program} x\n")
        script.chmod(0o755)
        run, _ = self.heard(script, status=3)
        self.assertIn("it was built with ThreadSanitizer", run.stderr)

    def test_programs_that_get_rights_are_named_whichever_way_they_get_them(self):
        if os.getuid() != 0:
            self.skipTest("only root may make such files")
        self.folder.chmod(0o755)
        for bits, owner, says in ((stat.S_ISUID, (65534, -1), "(setuid)"), (stat.S_ISGID, (-1, 65534), "(setgid)")):
            copy = self.changed("rights")
            os.chown(copy, *owner)
            copy.chmod(0o755 | bits)
            run = self.run_it("--summary", "--", copy)
            self.assertIn(says, run.stderr)
            copy.chmod(0o755)
            self.assertNotIn("nothing can be loaded", self.run_it("--summary", "--", copy).stderr)

    def test_a_program_with_file_capabilities_is_named_to_who_gets_them(self):
        copy = self.changed("capable")
        try:
            # VFS_CAP_REVISION_2, effective; CAP_NET_RAW permitted
            os.setxattr(copy, "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0))
        except OSError as error:
            self.skipTest(f"no capabilities can be given here: {error}")
        self.folder.chmod(0o755)
        self.assertNotIn("nothing can be loaded", self.run_it("--summary", "--", copy).stderr)  # root has them anyway

        def anybody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        try:
            subprocess.run([BINARY, "--version"], preexec_fn=anybody, capture_output=True, check=True)
        except (PermissionError, subprocess.CalledProcessError):  # a build in a folder of its owner's alone, say
            self.skipTest("another user cannot execute what was built here")
        self.assertIn("(file capabilities, setcap)", self.run_it("--summary", "--", copy, preexec_fn=anybody).stderr)

    def test_no_bytes_of_a_file_do_harm(self):
        data = Path(PUBLISHER).read_bytes()
        chance = random.Random(12)
        header = struct.unpack_from("<16sHHIQQQIHHHHHH", data)
        tables = [*range(64), *range(header[5], header[5] + header[9] * header[10]),
                  *range(header[6], header[6] + header[11] * header[12])]
        for n in range(60):
            made = bytearray(data)
            for at in chance.sample(tables, 8):
                if 4 <= at < 6 or at in (18, 19):  # what says that it is of our kind
                    continue
                made[at] = chance.choice((0, 1, 0x7f, 0x80, 0xff))
            if n % 3 == 0:
                del made[chance.randrange(len(made)):]
            path = self.folder / "hostile"
            path.write_bytes(made)
            path.chmod(0o644)  # not executable: looked at through a script, and never run
            script = self.folder / "script"
            script.write_text(f"#!{path}\n")
            script.chmod(0o755)
            run = subprocess.run([BINARY, "run", "--summary", "--", script], capture_output=True, text=True, timeout=100,
                                 check=False)
            self.assertEqual(run.returncode, 126, f"{n}: {run.stderr}")


class LeftOutTest(RunTest):
    """Commands that are named run with what they start as if there were no run."""

    def setUp(self):
        super().setUp()
        self.quiet = self.folder / "quiet"
        shutil.copy(PUBLISHER, self.quiet)

    def test_it_says_nothing_wherever_it_is_started_and_others_do(self):
        run = self.run_it("--except", "quiet", "--except", "other", "--summary", "--sink", self.sink, "--", "sh", "-c",
                          f"{PUBLISHER} returns 5; {self.quiet} returns 7; {self.quiet} exec 11; {PUBLISHER} returns 9")
        self.assertEqual(len(self.events()), 14)
        self.assertNotIn("quiet", run.stderr)

    def test_a_script_is_left_out_by_its_own_name_and_so_is_what_it_starts(self):
        script = self.folder / "job.sh"
        script.write_text(f"#!/bin/sh\n{PUBLISHER} returns 7\n")
        script.chmod(0o755)
        self.run_it("--except", "job.sh", "--sink", self.sink, "--", "sh", "-c", f"{script}; {PUBLISHER} returns 5")
        self.assertEqual(len(self.events()), 5)

    def test_its_environment_is_as_it_would_be_without_the_run(self):
        printer = self.folder / "printer"
        printer.write_text("#!/bin/sh\nenv -0 | sort -z\n")
        printer.chmod(0o755)
        for extra in ({}, {"ASAN_OPTIONS": "a=1", "NVTX_INJECTION64_PATH": "/x/y.so", "CUDA_INJECTION64_PATH": "/x/z.so", "LD_PRELOAD": "libm.so.6", "E": "1\n2"}):
            env = {**os.environ, **extra}
            bare = subprocess.run(["sh", "-c", printer], capture_output=True, text=True, check=True, env=env).stdout
            for sources in ([], ["--source", "cuda", "--source", "nvtx", "--source", "mpi", "--source", "torch"]):
                run = self.run_it("--except", "printer", *sources, "--sink", self.sink, "--", "sh", "-c", printer, env=env)
                self.assertEqual(run.stdout, bare)
                self.assertEqual(self.run_it("--except", "printer", *sources, "--sink", self.sink, "--", printer,
                                             env=env).stdout, bare.replace("_=/usr/bin/sh", f"_={printer}"))

    def test_what_the_program_set_itself_stays(self):
        printer = self.folder / "printer"
        printer.write_text('#!/bin/sh\necho "$ASAN_OPTIONS [$LD_PRELOAD]"\n')
        printer.chmod(0o755)
        run = self.run_it("--except", "printer", "--summary", "--source", "mpi", "--", "sh", "-c",
                          f"ASAN_OPTIONS=own=1 LD_PRELOAD=libm.so.6:$LD_PRELOAD {printer}")
        self.assertEqual(run.stdout, "own=1 [libm.so.6]\n")

    def test_what_is_no_name_is_refused(self):
        self.refused("--except", "/bin/sh", "--summary", "--", "true", status=2, says="without its folder")
        self.refused("--except", "--", "--summary", "--", "true", status=2, says="wants a value")


if __name__ == "__main__":
    sys.exit(main())
