#!/usr/bin/env python3
"""Does `ringmain sort` keep every line and put it in its place, and is its file written whole or not at all?

usage: sort_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import fcntl
import gzip
import json
import os
import random
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
TRACE = ROOT / "examples/traces" / "ddp_gloo_rank0.json.gz"
SANITIZED = bool(os.environ.get("RINGMAIN_SANITIZED"))


def line(time_ns, origin="a" * 16, clocks=None, **more):
    """One event as a sink writes it; `clocks`: monotonic and real, in a process's first line."""
    event = {"channel": "x", "time_ns": time_ns, "publisher": 1, "sequence": 1, "origin": origin}
    if clocks:
        event["origin_process"] = {"host": "n", "pid": 1, "monotonic_ns": clocks[0], "realtime_ns": clocks[1]}
    return (json.dumps({**event, **more}, separators=(",", ":")) + "\n").encode()


class SortTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out.jsonl"

    def file(self, name, *lines):
        path = self.folder / name
        path.write_bytes(b"".join(lines))
        return path

    def run_it(self, *arguments, status=0, **options):
        run = subprocess.run([BINARY, "sort", *map(str, arguments)], capture_output=True, timeout=150, check=False, **options)
        self.said = run.stderr.decode()
        self.assertEqual(run.returncode, status, self.said)
        return run

    def sorts(self, *arguments, **options):
        """The sorted lines."""
        return self.run_it(*arguments, **options).stdout.splitlines(keepends=True)

    def refuses(self, *arguments, says, status=1, **options):
        """Nothing is written, and one sentence says why."""
        before = sorted(path.name for path in self.folder.iterdir())
        run = self.run_it(*arguments, status=status, **options)
        self.assertEqual(run.stdout, b"")
        self.assertEqual(len(self.said.splitlines()), 1, self.said)
        self.assertTrue(self.said.startswith("ringmain: "), self.said)
        self.assertIn(says, self.said)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before, "nothing is left lying about")


class SortOrderTest(SortTest):
    """By the process's clock within a process, by the time of day between processes; nothing is changed."""

    def test_lines_of_a_process_are_in_order_of_time_and_those_of_one_moment_as_they_were(self):
        lines = [line(30, clocks=(1, 1)), line(10, n=1), line(20), line(10, n=2), line(10, n=0)]
        self.assertEqual(self.sorts(self.file("a", *lines)), [lines[1], lines[3], lines[4], lines[2], lines[0]])

    def test_processes_are_merged_by_the_time_of_day(self):
        ahead = [line(1000, "a" * 16, (1000, 5000)), line(1020, "a" * 16)]  # 5000, 5020
        behind = [line(10, "b" * 16, (0, 5000)), line(30, "b" * 16)]  # 5010, 5030
        want = [ahead[0], behind[0], ahead[1], behind[1]]
        self.assertEqual(self.sorts(self.file("a", *ahead), self.file("b", *behind)), want)
        self.assertEqual(self.sorts(self.file("both", behind[0], ahead[0], behind[1], ahead[1])), want)

    def test_what_is_sorted_stays_so_though_a_first_line_came_to_lie_later(self):
        late = [line(9, "a" * 16, (0, 100)), line(3, "a" * 16), line(4, "b" * 16, (0, 100))]
        once = self.file("once", *self.sorts(self.file("late", *late)))
        self.assertEqual(once.read_bytes(), late[1] + late[2] + late[0])
        self.assertEqual(b"".join(self.sorts(once)), once.read_bytes())

    def test_a_process_in_several_files_is_known_by_its_first_line_in_any(self):
        first, other = self.file("first", line(5, clocks=(0, 50))), self.file("other", line(3))
        third = self.file("third", line(54, "b" * 16, (0, 0)))
        self.assertEqual(self.sorts(third, other, first), [line(3), line(54, "b" * 16, (0, 0)), line(5, clocks=(0, 50))])

    def test_each_byte_of_a_line_is_kept(self):
        odd = b' {"a":"\\u00e4\xc3\xa4\\/", "time_ns" :-7,"channel":"x","origin":"00000000000000ff","b":[[],{"c":null}],"f":1e+400 }\t\r\n'
        big = b'{"channel":"x","time_ns":-9,"origin":"00000000000000ff","f":18446744073709551616}\n'
        self.assertEqual(self.sorts(self.file("a", odd, big)), [big, odd])

    def test_one_process_needs_no_first_line_and_with_the_clock_of_one_host_nobody_does(self):
        self.assertEqual(self.sorts(self.file("a", line(2), line(1))), [line(1), line(2)])
        mixed = self.file("b", line(2), line(1, "b" * 16))
        self.refuses(self.file("c", line(9), line(2), line(1, "b" * 16, (0, 0))), says="c, line 1: ")
        self.refuses(mixed, says="--clock monotonic")
        self.assertEqual(self.sorts("--clock", "monotonic", mixed), [line(1, "b" * 16), line(2)])
        self.refuses("--clock", "wal", mixed, says="did you mean 'wall'?", status=2)

    def test_standard_input_a_pipe_and_a_redirected_file_are_read_as_files_are(self):
        lines = [line(2, clocks=(0, 0)), line(1)]
        self.assertEqual(self.sorts("-", input=b"".join(lines)), lines[::-1])
        path = self.file("a", b"not ours\n", *lines)
        with path.open("rb", buffering=0) as opened:
            opened.seek(9)  # as a shell leaves it that has read a line
            self.assertEqual(self.sorts("-", stdin=opened), lines[::-1])
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["sh", "-c", f'cat "{self.file("b", *lines)}" >"{pipe}"']):
            self.assertEqual(self.sorts(pipe), lines[::-1])

    def test_gzip_is_unpacked_whatever_its_name_and_wherever_it_comes_from(self):
        lines = [line(2, clocks=(0, 0)), line(1)]
        packed = b"".join(map(gzip.compress, lines))  # of two members
        path = self.file("a", packed)
        self.assertEqual(self.sorts(path), lines[::-1])
        self.assertEqual(self.sorts("-", input=packed), lines[::-1])
        with path.open("rb") as opened:
            self.assertEqual(self.sorts("-", stdin=opened), lines[::-1])
        self.assertEqual(self.sorts(path, self.file("b", line(3))), [*lines[::-1], line(3)])
        self.refuses(self.file("c", packed[:-3]), says="c ends in the middle of its gzip data")
        self.refuses(self.file("d", packed + b"x"), says="it is damaged; copy or record it again")
        self.refuses(self.file("e", gzip.compress(line(1) + b"torn\n")), says="e, line 2: ")

    def test_what_a_replay_writes_is_put_in_order(self):
        written = self.folder / "events"
        run = subprocess.run([BINARY, "replay", "--speed", "max", "--quiet", "--workers", "2", "--sink",
                              f"json_lines:{written}", TRACE], capture_output=True, timeout=150, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = written.read_bytes().splitlines(keepends=True)
        times = [json.loads(event)["time_ns"] for event in lines]
        self.assertNotEqual(times, sorted(times), "else this shows nothing")
        self.assertEqual(self.sorts(written), sorted(lines, key=lambda event: json.loads(event)["time_ns"]))

    def test_many_lines_and_many_files(self):
        chance = random.Random(3)
        count = 20_000 if SANITIZED else 300_000
        lines = [line(chance.randrange(1000), clocks=None if n else (0, 0), n=n) for n in range(count)]
        path = self.file("many", *lines)
        want = [event for _, event in sorted(zip((int(re.search(rb'time_ns":(\d+)', event)[1]) for event in lines), lines,
                                                 strict=True), key=lambda pair: pair[0])]
        self.assertEqual(self.sorts(path), want)
        paths = [self.file(f"rank{n}", *lines[n::300]) for n in range(300)]  # more than 256 descriptors
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertEqual(len(self.sorts(*paths, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit[1])))),
                         count)


class SortOutputTest(SortTest):
    """Whole or not at all, and never over what is read."""

    def setUp(self):
        super().setUp()
        self.lines = [line(2, clocks=(0, 0)), line(1)]
        self.path = self.file("a", *self.lines)

    def test_a_file_is_written_for_its_owner_and_says_what_lies_in_it(self):
        run = self.run_it("-o", self.out, self.path)
        self.assertEqual(self.out.read_bytes(), b"".join(self.lines[::-1]))
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o600)
        self.assertIn(b"2 lines of 1 process", run.stdout)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a", "out.jsonl"])
        self.out.chmod(0o644)
        run = self.run_it("-o", self.out, "--json", self.path)
        self.assertEqual(json.loads(run.stdout), {"files": 1, "processes": 1, "lines": 2, "bytes": sum(map(len, self.lines)),
                                                  "left_out": 0, "output": str(self.out)})
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o644, "it stays as it was")
        self.assertEqual(self.run_it("-o", self.out, "--quiet", self.path).stdout, b"")

    def test_lines_on_standard_output_have_no_summary_among_them(self):
        self.assertEqual(self.sorts(self.path, "-o", "-"), self.lines[::-1])
        self.assertEqual(self.said, "")
        self.assertEqual(self.sorts(self.path, "--json"), self.lines[::-1])
        self.assertEqual(json.loads(self.said)["lines"], 2)

    def test_who_may_read_a_new_file_is_said_as_for_sinks(self):
        self.run_it("-o", self.out, self.path, env={**os.environ, "RINGMAIN_OUTPUT_MODE": "0640"}, umask=0o022)
        self.assertEqual(stat.S_IMODE(self.out.stat().st_mode), 0o640)

    def test_where_the_disk_is_full_the_old_file_stays(self):
        self.out.write_text("precious")
        many = self.file("many", *(line(n, clocks=None if n else (0, 0)) for n in range(20_000)))

        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

        self.refuses("-o", self.out, many, says=f"{self.out} cannot be written: ", preexec_fn=full)
        self.assertEqual(self.out.read_text(), "precious")
        with many.open("rb") as opened, subprocess.Popen(["cat"], stdin=opened, stdout=subprocess.PIPE) as cat:
            self.refuses("-", says="standard input", stdin=cat.stdout, preexec_fn=full)
        with open("/dev/full", "wb") as nowhere:
            run = subprocess.run([BINARY, "sort", many], stdout=nowhere, stderr=subprocess.PIPE, timeout=100, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"standard output cannot be written", run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1)

    def test_a_reader_that_has_seen_enough_ends_it_without_a_word(self):
        many = self.file("many", *(line(n, clocks=None if n else (0, 0)) for n in range(20_000)))
        command = ["bash", "-c", f'"{BINARY}" sort "{many}" | head -1; exit "${{PIPESTATUS[0]}}"']
        run = subprocess.run(command, capture_output=True, timeout=100, check=False)
        self.assertEqual((run.returncode, run.stderr), (128 + signal.SIGPIPE, b""))
        run = subprocess.run(["sh", "-c", 'trap "" PIPE; exec "$@"', "-", *command], capture_output=True, timeout=100, check=False)
        self.assertEqual(run.returncode, 1, "whoever ignores SIGPIPE wants the error")
        self.assertIn(b"standard output cannot be written: Broken pipe", run.stderr)

    def test_what_is_read_is_not_written(self):
        link, hard = self.folder / "link", self.folder / "hard"
        hard.hardlink_to(self.path)
        self.refuses("-o", self.path, self.path, says="is read and cannot be written too")
        self.refuses("-o", hard, self.path, says="is read and cannot be written too")
        hard.unlink()
        link.symlink_to(self.path)
        self.refuses("-o", link, self.path, says="it is a link")
        with self.path.open("ab") as same:
            run = subprocess.run([BINARY, "sort", self.path], stdout=same, stderr=subprocess.PIPE, timeout=100, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"is read and cannot be written too", run.stderr)
        self.assertEqual(self.path.read_bytes(), b"".join(self.lines))

    def test_what_cannot_be_read_or_written_is_said(self):
        self.refuses(self.folder / "none", says=f"{self.folder / 'none'} cannot be read: No such file")
        self.refuses(self.folder, says="it is a folder")
        self.refuses("-o", self.folder, self.path, says="it is no file")
        self.refuses("-o", self.folder / "no" / "such" / "out", self.path, says="more than its own folder is missing")
        self.refuses(self.path, self.path, says="was given twice")
        self.refuses("-", "-", says="more than once", status=2, input=b"")
        self.refuses(says="sort wants a file", status=2)
        self.refuses("-o", "", self.path, says="-o wants a file", status=2)

    def test_a_pipe_and_a_descriptor_are_written_as_they_are(self):
        script = f'"{BINARY}" sort --quiet -o /dev/fd/3 "{self.path}" 3>"{self.out}"'
        subprocess.run(["sh", "-c", script], check=True, timeout=100)
        self.assertEqual(self.out.read_bytes(), b"".join(self.lines[::-1]))
        self.run_it("-o", "/dev/null", self.path)

    def test_who_is_killed_leaves_nothing(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen([BINARY, "sort", pipe, "-o", self.out]) as reading:
            self.addCleanup(reading.kill)
            with os.fdopen(os.open(pipe, os.O_RDWR), "wb", buffering=0) as writing:
                writing.write(self.lines[0])
                while int.from_bytes(fcntl.ioctl(writing, termios.FIONREAD, bytes(4)), sys.byteorder) > 0:
                    self.assertIsNone(reading.poll(), "it reads")
                    time.sleep(0.001)
                reading.send_signal(signal.SIGTERM)
                self.assertEqual(reading.wait(100), -signal.SIGTERM)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a", "pipe"])

    def test_help_says_what_it_needs(self):
        said = self.run_it("--help").stdout.decode()
        for word in ("--skip-torn", "--clock", "-o FILE", "24 bytes", "exit status"):
            self.assertIn(word, said)


if __name__ == "__main__":
    sys.exit(main())
