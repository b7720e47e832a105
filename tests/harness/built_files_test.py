#!/usr/bin/env python3
"""Do the checks of built files find what they look for, and does the edit of the queue's header count?"""

import os
import subprocess
import unittest

from check_fixture import ROOT, CheckTest

COMPILER = os.environ.get("CXX", "c++")


class BuiltFilesTest(CheckTest):
    def build(self, text, *flags):
        source, built = self.write("some.cpp", text), self.tree / "libsome.so"
        subprocess.run([COMPILER, "-std=c++20", "-shared", "-fPIC", *flags, str(source), "-o", str(built)], check=True)
        return str(built)


class Symbols(BuiltFilesTest):
    CHECK = "check_symbols.py"

    def test_a_plain_library_passes(self):
        self.assert_passes(self.CHECK, self.build("int answer() { return 42; }"))

    def test_an_inline_variable_is_found(self):
        built = self.build("inline int shared_count = 0; int* use() { return &shared_count; }")
        self.assert_fails(self.CHECK, "shared_count is a unique symbol", built)

    def versioned(self, script):
        flag = f"-Wl,--version-script={self.write('some.map', script)}"
        return self.build('extern "C" int ringmain_answer() { return 42; } namespace ringmain { int answer() { return 42; } }', flag)

    def test_names_for_c_and_for_cxx_have_each_their_version(self):
        built = self.versioned("RINGMAIN_0.1 { global: ringmain_*; }; RINGMAIN_CXX_0.1 { global: _ZN8ringmain*; local: *; };")
        self.assert_passes(self.CHECK, built, "0.1")
        self.assert_fails(self.CHECK, "ringmain_answer has the version RINGMAIN_0.1, and not RINGMAIN_0.2", built, "0.2")

    def test_a_name_with_the_version_of_another_language_is_found(self):
        built = self.versioned("RINGMAIN_0.1 { global: ringmain_*; _ZN8ringmain*; local: *; };")
        self.assert_fails(self.CHECK, "ringmain::answer() has the version RINGMAIN_0.1, and not RINGMAIN_CXX_0.1", built, "0.1")

    def test_a_name_without_a_version_is_found(self):
        built = self.build('extern "C" int ringmain_answer() { return 42; }')
        self.assert_fails(self.CHECK, "ringmain_answer has no version, and not RINGMAIN_0.1", built, "0.1")

    def test_a_file_without_symbols_shows_nothing(self):
        self.assert_fails(self.CHECK, "no symbols", str(self.write("empty.so", "")))


class Hardening(BuiltFilesTest):
    CHECK = "check_hardening.py"
    TEXT = "void fill(char*); int f() { char room[64]; fill(room); return room[3]; }"
    FLAGS = ("-fstack-protector-strong", "-Wl,-z,relro,-z,now,-z,noexecstack")

    def test_a_hardened_library_passes(self):
        self.assert_passes(self.CHECK, self.build(self.TEXT, *self.FLAGS))

    def test_each_missing_flag_is_found(self):
        for flag, words in (("-fno-stack-protector", "no stack protector"), ("-Wl,-z,norelro", "relocations stay"),
                            ("-Wl,-z,lazy", "bound late"), ("-Wl,-z,execstack", "may be executable")):
            with self.subTest(flag):
                self.assert_fails(self.CHECK, words, self.build(self.TEXT, *self.FLAGS, flag))


class QueueEdit(CheckTest):
    SCRIPT = ROOT / "cmake" / "EditQueueForTsan.cmake"
    HEADER = os.environ.get("RINGMAIN_QUEUE_HEADER", "")

    def setUp(self):
        super().setUp()
        if not self.HEADER:
            self.skipTest("RINGMAIN_QUEUE_HEADER does not name the installed concurrentqueue.h")
        with open(self.HEADER, encoding="utf-8") as file:
            self.text = file.read()

    def edit(self, text):
        source, copy = self.write("from.h", text), self.tree / "copy" / "to.h"
        run = subprocess.run(["cmake", f"-DFROM={source}", f"-DTO={copy}", "-P", str(self.SCRIPT)],
                             capture_output=True, text=True, check=False)
        return run, copy

    def test_six_lines_change_and_no_other(self):
        run, copy = self.edit(self.text)
        self.assertEqual(run.returncode, 0, run.stderr)
        before, after = self.text.splitlines(), copy.read_text().splitlines()
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        self.assertEqual(len(changed), 6)
        for old, new in changed:
            self.assertIn(new, (old.replace("relaxed", "acquire"), old.replace("relaxed", "release")))

    def test_a_header_with_one_place_less_or_more_stops(self):
        for place in ("if (!emptyFlags[i].load(std::memory_order_relaxed))",
                      "auto overcommit = this->dequeueOvercommit.load(std::memory_order_relaxed);"):
            for text in (self.text.replace(place, "", 1), self.text + "\n// " + place):
                run, copy = self.edit(text)
                self.assertNotEqual(run.returncode, 0)
                self.assertIn("needs its edits looked at again", " ".join(run.stderr.split()))
                self.assertFalse(copy.exists())


if __name__ == "__main__":
    unittest.main()
