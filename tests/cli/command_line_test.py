#!/usr/bin/env python3
"""Are command lines read as command_lines.jsonl says: good, wrong and odd ones?

usage: command_line_test.py TESTCASE, with the program in $RINGMAIN_BINARY
       command_line_test.py --write, to take down what the program says now to the command lines that are there

A line of the list is one call: its words and exit status, all of standard error, and all of standard output unless
that is null, as it is where the machine or the version decides. Bytes that are no UTF-8 are lone surrogates.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
SANITIZED = bool(os.environ.get("RINGMAIN_SANITIZED"))
LIST = Path(__file__).with_name("command_lines.jsonl")


def calls():
    return [json.loads(line) for line in LIST.read_text().splitlines()]


def text(said):
    return said.decode(errors="surrogateescape")


def said_to(words):
    """Exit status, standard output and standard error, in an empty folder and with nothing on standard input."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGMAIN_")}
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([BINARY, *map(os.fsencode, words)], capture_output=True, stdin=subprocess.DEVNULL,
                             cwd=folder, env=environment, timeout=150, check=False)
    return run.returncode, text(run.stdout), text(run.stderr)


def verbs():
    """All but help, as the program lists them."""
    listed = said_to(["--help"])[1].split("verbs:\n", 1)[1].split("\n\n", 1)[0]
    return [line.split()[0] for line in listed.splitlines() if line.split()[0] != "help"]


class CommandLineTest(unittest.TestCase):
    def test_every_verb_is_called_here_and_shown_in_the_readme(self):
        called, readme = {call["words"][0] for call in calls() if call["words"]}, (ROOT / "README.md").read_text()
        self.assertGreater(len(verbs()), 4)
        for verb in verbs():
            with self.subTest(verb):
                self.assertIn(verb, called, "add a call of it to command_lines.jsonl")
                self.assertIn(f"ringmain {verb}", readme, "add a line to README.md")

    def test_every_command_line_of_the_list_gets_its_answer(self):
        self.assertGreater(len(calls()), 80)
        for call in calls():
            if SANITIZED and call["words"][0] == "run" and call["status"] != 2:
                continue  # nothing can be preloaded from a sanitized build
            with self.subTest(words=call["words"]):
                status, out, err = said_to(call["words"])
                self.assertEqual((status, err), (call["status"], call["err"]))
                if call["out"] is not None:
                    self.assertEqual(out, call["out"])

    def test_help_is_asked_for_in_several_ways_and_is_the_same(self):
        for verb in verbs():
            status, usage, err = said_to(["help", verb])
            self.assertEqual((status, err), (0, ""))
            nested = usage.startswith(f"usage: ringmain {verb} VERB")
            self.assertTrue(nested or usage.startswith(f"usage: ringmain {verb} [OPTION…]"), usage)
            more = [] if nested else [["help", verb, "more"], [verb, "--help", "--bogus"]]  # there "more" is a verb
            for words in (["--help", verb], ["-h", verb], [verb, "--help"], [verb, "-h"], *more):
                self.assertEqual(said_to(words), (0, usage, ""), words)
        status, usage, err = said_to(["help"])
        self.assertTrue(usage.startswith("usage: ringmain VERB"), usage)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(said_to(["--help"]), (0, usage, ""))
        self.assertEqual(said_to(["-h"]), (0, usage, ""))
        self.assertEqual(said_to([]), (2, "", usage))


def write():
    lines = []
    for call in calls():
        status, out, err = said_to(call["words"])
        line = {"words": call["words"], "status": status, "out": None if call["out"] is None else out, "err": err}
        lines.append(json.dumps(line) + "\n")
    LIST.write_text("".join(lines))


if __name__ == "__main__":
    sys.exit(write() if sys.argv[1:] == ["--write"] else main())
