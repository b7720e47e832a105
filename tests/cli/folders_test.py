#!/usr/bin/env python3
"""Does every verb that writes a file make the file's own folder where it is missing, and none above it?

usage: folders_test.py FoldersTest, with the program in $RINGMAIN_BINARY
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
from fr_test import healthy_job
from summary_test import line

BINARY = os.environ["RINGMAIN_BINARY"]
RING = Path(__file__).resolve().parents[1] / "engine/flight/corpus/some"
VERBS = ("run", "replay", "sort", "summary", "post-mortem", "door", "fr analyze", "fr convert", "fr merge", "providers", "doctor",
         "completion", "man")


def ringmain(*words, **options):
    return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False, timeout=150, **options)


class FoldersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        lines = self.folder / "lines"
        lines.write_bytes(line("x", rank=0, took_ns=5))
        dumps = self.folder / "dumps"
        dumps.mkdir()
        for rank, dump in enumerate(healthy_job()):
            (dumps / f"rank_{rank}").write_text(json.dumps(dump))
        self.reads = {("sort", "-o"): lines, ("summary", "--svg"): lines, ("post-mortem", "--svg"): RING, ("fr analyze", "--svg"): dumps,
                      ("fr convert", "-o"): dumps / "rank_0", ("fr merge", "-o"): dumps}

    def test_each_option_that_names_a_file_to_write_is_tried_here(self):
        written = {(verb, option) for verb in VERBS
                   for option, value in re.findall(r"^  (-\S+) ([A-Z]+)", ringmain(*verb.split(), "--help").stdout, re.M)
                   if value in ("FILE", "PREFIX")}
        self.assertEqual(written, set(self.reads))

    def test_the_last_folder_is_made_for_its_owner_and_those_above_are_not(self):
        for (verb, option), file in self.reads.items():
            with self.subTest(verb):
                folder = self.folder / verb / "new"
                said = ringmain(*verb.split(), file, option, folder / "out")
                self.assertIn(said.returncode, (1, 2))
                self.assertIn(f"cannot be written: more than its own folder is missing; make {folder}/ first\n", said.stderr)
                self.assertEqual(said.stderr.count("\n"), 1)
                folder.parent.mkdir()
                said = ringmain(*verb.split(), file, option, folder / "out")
                self.assertEqual((said.returncode, said.stderr), (0, ""))
                self.assertTrue(list(folder.glob("out*")))
                self.assertEqual(oct(folder.stat().st_mode & 0o777), "0o700")

    def test_a_name_that_is_a_folders_is_refused_and_none_is_made(self):
        for (verb, option), file in self.reads.items():
            if verb == "fr merge":
                continue  # a prefix, which may end so
            with self.subTest(verb):
                said = ringmain(*verb.split(), file, option, f"{self.folder}/new/")
                self.assertIn("/new/ cannot be written: it names no file, but a folder\n", said.stderr)
                self.assertFalse((self.folder / "new").exists())

    @unittest.skipUnless(os.path.isdir("/sys/kernel"), "there is no /sys, where not even root makes folders")
    def test_why_a_folder_cannot_be_made_is_said(self):
        said = ringmain("sort", self.reads["sort", "-o"], "-o", "/sys/new/out")
        self.assertEqual(said.returncode, 1)
        self.assertIn("/sys/new/out cannot be written: /sys/new/ cannot be made: ", said.stderr)

    def test_no_folder_is_made_for_a_sink_which_other_programs_open(self):
        path = self.folder / "new/out"
        said = ringmain("post-mortem", RING, "--sink", f"json_lines:{path}")
        self.assertEqual(said.returncode, 1)
        self.assertIn("No such file or directory; make its folder first", said.stderr)
        self.assertFalse(path.parent.exists())


if __name__ == "__main__":
    sys.exit(main())
