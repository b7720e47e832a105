#!/usr/bin/env python3
"""Do the manual's pages and the shells' completion have all that --help says, and do their readers take them?

usage: manual_test.py TESTCASE, with the program in $RINGMAIN_BINARY
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from cases import main

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))


def run(*words, status=0, **options):
    ended = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=150, check=False,
                           **options)
    if ended.returncode != status:
        raise AssertionError(f"{words} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended


def ringmain(*words, **options):
    return run(BINARY, *words, **options)


def section(text, name):
    """The first words of the items of one section of --help."""
    found = re.search(rf"^{name}:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", found[1], re.M) if found else []


def verbs(path=()):
    """(path, options) of the program and each verb, as --help has them."""
    text = ringmain(*path, "--help").stdout
    options = [word for item in section(text, "options") for word in item.split(",")]
    found = [(path, options)]
    for verb in section(text, "verbs"):
        if verb != "help":
            found += verbs((*path, verb))
    return found


class ManTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.pages = Path(folder.name) / "new" / "man1"
        ringmain("man", "--all", cls.pages)

    @staticmethod
    def name(path):
        return "-".join(("ringmain", *path)) + ".1"

    def test_every_verb_has_a_page_and_nothing_else_does(self):
        self.assertEqual(sorted(page.name for page in self.pages.iterdir()),
                         sorted(self.name(path) for path, _ in verbs()))

    def test_every_option_and_verb_is_in_its_page_and_pages_are_ascii(self):
        for path, options in verbs():
            page = (self.pages / self.name(path)).read_text("ascii")
            shown = page.replace("\\-", "-")
            for option in options:
                with self.subTest(path=path, option=option):
                    self.assertRegex(shown, rf"\\fB(?:-h, )?{re.escape(option)}(?:, --help)?\\fR")
            for other, _ in verbs():
                if other[:-1] == path and other:
                    self.assertIn(f"\\fB{other[-1]}\\fR", shown)
                    self.assertIn(f".BR {'-'.join(('ringmain', *other))} (1)", shown)
            for words in (path, ("-".join(path),) if path else (), ("-".join(("ringmain", *path)),)):
                self.assertEqual(ringmain("man", *words).stdout, page)

    def test_every_page_that_a_page_names_is_installed(self):
        there = {page.stem for page in self.pages.iterdir()}
        for page in self.pages.iterdir():
            named = set(re.findall(r"\b(ringmain[\w-]*) ?\(1\)", page.read_text("ascii").replace("\\-", "-")))
            self.assertLessEqual(named, there, page.name)
            self.assertTrue(named, page.name)

    def test_man_and_mandoc_read_every_page_without_a_warning(self):
        readers = {"man": ("man", "--warnings", "-E", "UTF-8", "-l"), "mandoc": ("mandoc", "-Tlint", "-Wwarning")}
        readers = {name: call for name, call in readers.items() if shutil.which(name)}
        if not readers:
            self.skipTest("there is neither man nor mandoc here (Debian: man-db, mandoc)")
        for page in self.pages.iterdir():
            for name, call in readers.items():
                with self.subTest(reader=name, page=page.name):
                    ended = subprocess.run([*call, str(page)], capture_output=True, text=True, check=False,
                                           env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8"})
                    # A date of a page would be that of the build, which then would not be the same twice.
                    said = [line for line in (ended.stderr + (ended.stdout if name == "mandoc" else "")).splitlines()
                            if "missing date" not in line]
                    self.assertEqual(said, [])
                    if name == "man":
                        self.assertIn("SYNOPSIS", ended.stdout)

    def test_wrong_calls_get_a_sentence(self):
        file = self.pages / "ringmain.1"
        for words, status, sentence in (
                (("nosuch",), 2, "there is no verb 'nosuch'"), (("repley",), 2, "did you mean 'replay'?"),
                (("fr-mrege",), 2, "there is no verb 'fr-mrege'"), (("fr", "nosuch"), 2, "there is no verb 'nosuch'"),
                (("run", "more"), 2, "there is no verb 'more'"),
                (("--all", "x", "run"), 2, "--all writes every page, so it takes no verb"),
                (("--all", ""), 2, "--all wants a folder"),
                (("--all", file / "x"), 1, f"{file}/x cannot be made: ")):
            with self.subTest(words):
                said = ringmain("man", *words, status=status)
                self.assertEqual(said.stdout, "")
                self.assertIn(sentence, said.stderr)
                self.assertEqual(said.stderr.count("\n"), 1)


# Calls bash's function as the shell does; the words are divided as readline divides them.
BASH = r"""
set -u
eval "$("$1" completion bash)"
shift
COMP_LINE=$1 COMP_POINT=${#1}
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_ringmain ringmain
printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""


class CompletionTest(unittest.TestCase):
    """What is said to a line as far as it is typed, without what belongs to a word already."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "trace one.json").touch()
        (self.folder / "dumps").mkdir()
        (self.folder / "ringmain").symlink_to(BINARY)
        self.environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "HOME": str(self.folder)}

    def bash(self, line):
        words = re.findall(r"[=:]|[^\s=:]+", line) + ([""] if line[-1].isspace() else [])
        made = run("bash", "--norc", "-c", BASH, "bash", BINARY, line, *words, cwd=self.folder, env=self.environment)
        self.assertEqual(made.stderr, "", line)
        return [word.strip() for word in made.stdout.splitlines() if word.strip()]

    def fish(self, line):
        script = f"'{BINARY}' completion fish | source; complete -C '{line}'"
        made = run("fish", "--no-config", "-c", script, cwd=self.folder, env=self.environment)
        self.assertEqual(made.stderr, "", line)
        return [word.split("\t")[0] for word in made.stdout.splitlines()]

    def zsh(self, line):
        """By a terminal of zsh's own, as there is no other way to ask it."""
        script = Path(__file__).with_name("complete.zsh")
        made = run("zsh", "-f", script, BINARY, line, cwd=self.folder, env=self.environment)
        return [word.replace("\\", "") for word in made.stdout.splitlines() if word]

    def shell(self, name):
        if not shutil.which(name):
            self.skipTest(f"there is no {name} here")
        return getattr(self, name)

    def everything_is_completed_by(self, name):
        ask = self.shell(name)
        known = verbs()
        for path, options in known:
            before = " ".join(("ringmain", *path))
            with self.subTest(before):
                if below := {other[-1] for other, _ in known if other and other[:-1] == path}:
                    self.assertEqual(set(ask(before + " ")), below | {"help"})
                self.assertEqual(set(ask(before + " -")) - {"-V", "-"}, set(options))

    # What each value is, by its name in --help: a new name is put here when it is known what is said to it.
    VALUES = {**dict.fromkeys(("FILE", "PREFIX"), "files"), "FOLDER": "folders", "SOURCE": "heartbeat", "SINK": "json_lines",
              **dict.fromkeys(("FORMAT", "ORDER", "CLOCK", "WHAT", "FACTOR"), "words"),
              **dict.fromkeys(("N", "SECONDS", "EVENTS", "BYTES", "TEXT", "REGEX", "NAME", "PATTERN", "PATTERNS"), "nothing")}

    def every_value_is_completed_by(self, name):
        ask = self.shell(name)
        for path, _ in verbs():
            help = ringmain(*path, "--help").stdout
            options = re.findall(r"^  (--?\w[\w-]*) ([A-Z]+) +(.*(?:\n {10,}.*)*)", help, re.M)
            for option, value, says in options:
                with self.subTest(path=path, option=option):
                    self.assertIn(value, self.VALUES)
                    said = {word.rstrip(":/") for word in ask(" ".join(("ringmain", *path, option, "")))}
                    if self.VALUES[value] == "words":
                        self.assertTrue(said)
                        for word in said:
                            self.assertRegex(says, rf"\b{word}\b")
                    elif self.VALUES[value] == "files":
                        self.assertLessEqual({"trace one.json", "dumps"}, said)
                    elif self.VALUES[value] == "folders":
                        self.assertEqual(said, {"dumps"})
                    elif self.VALUES[value] == "nothing":
                        self.assertEqual(said, set())
                    else:
                        self.assertIn(self.VALUES[value], said)

    def test_bash_has_the_words_that_help_says_for_every_value(self):
        self.every_value_is_completed_by("bash")

    def test_fish_has_the_words_that_help_says_for_every_value(self):
        self.every_value_is_completed_by("fish")

    def test_zsh_has_the_words_that_help_says_for_every_value(self):
        self.every_value_is_completed_by("zsh")

    def test_bash_has_every_verb_and_option(self):
        self.everything_is_completed_by("bash")

    def test_fish_has_every_verb_and_option(self):
        self.everything_is_completed_by("fish")

    def test_zsh_has_every_verb_and_option(self):
        self.everything_is_completed_by("zsh")

    def test_bash_completes_values_operands_and_commands(self):
        self.values_are_completed_by("bash", after_equals=("kineto",), after_colon=("trace one.json",))

    def test_fish_completes_values_operands_and_commands(self):
        self.values_are_completed_by("fish", after_equals=("--format=kineto",), after_colon=("json_lines:trace one.json",))

    def test_zsh_completes_values_operands_and_commands(self):
        self.values_are_completed_by("zsh", after_equals=("kineto",), after_colon=("trace one.json",))

    def values_are_completed_by(self, name, after_equals, after_colon):
        ask = self.shell(name)
        without_colon = lambda line: {word.rstrip(":") for word in ask(line)}
        self.assertEqual(set(ask("ringmain rep")), {"replay"})
        self.assertEqual(set(ask("ringmain fr an")), {"analyze"})
        self.assertEqual(set(ask("ringmain help po")), {"post-mortem"})
        for line in ("ringmain help fr ", "ringmain fr help "):
            self.assertEqual(set(ask(line)) - {"help"}, {"analyze", "convert", "merge"})
        self.assertEqual(ask("ringmain help sort "), [])
        self.assertEqual(set(ask("ringmain replay --format ")), {"kineto", "torch_trace"})
        self.assertEqual(tuple(ask("ringmain replay --format=ki")), after_equals)
        self.assertLessEqual({"json_lines", "summary"}, without_colon("ringmain run --sink "))
        self.assertNotIn("nvtx", without_colon("ringmain run --sink "))
        self.assertLessEqual({"nvtx", "cuda"}, without_colon("ringmain run --source "))
        self.assertEqual(tuple(ask("ringmain run --sink json_lines:tra")), after_colon)
        self.assertEqual(set(ask("ringmain replay tra")), {"trace one.json"})
        self.assertEqual({word.rstrip("/") for word in ask("ringmain man --all ")}, {"dumps"})
        self.assertEqual(set(ask("ringmain completion f")), {"fish"})
        self.assertEqual(set(ask("ringmain door stat")), {"stats"})
        # Of the command, which begins where the options of run end.
        self.assertIn("mkfifo", ask("ringmain run --summary mkf"))
        self.assertIn("mkfifo", ask("ringmain run --sink summary -- mkf"))
        self.assertNotIn("--sink", ask("ringmain run --summary cat --si"))
        self.assertEqual(ask("ringmain nosuch --"), [])

    def test_wrong_calls_get_a_sentence(self):
        for words, sentence in (((), "it wants one shell: bash, zsh or fish"), (("bash", "zsh"), "it wants one shell"),
                                (("bsh",), "none for 'bsh'; did you mean 'bash'?")):
            with self.subTest(words):
                said = ringmain("completion", *words, status=2)
                self.assertEqual(said.stdout, "")
                self.assertIn(sentence, said.stderr)


if __name__ == "__main__":
    sys.exit(main())
