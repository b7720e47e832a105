#!/usr/bin/env python3
"""Is the reference made without a warning, and is a wrong comment found?

The build under test is in $RINGMAIN_BUILD, with the Python that its package is for in $RINGMAIN_PYTHON, if it has one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "support")]
import docs
import public_headers
from cases import main

HPP, H = Path("bus/some.hpp"), Path("bindings/c/some.h")


def shown(path, *lines):
    return public_headers.for_doxygen(path, "\n".join(lines)).split("\n")


class DocsTest(unittest.TestCase):
    def test_the_first_comment_is_of_the_file_and_one_behind_a_member_is_of_the_member(self):
        self.assertEqual(shown(HPP, "// What is it?", "// This.", "#pragma once"),
                         ["/// @file", "/// @brief What is it?", "/// This.", "#pragma once"])
        self.assertEqual(shown(HPP, "struct S {", "  int n = 0;  // how many", "              // there are", "  int m;", "};"),
                         ["struct S {", "  int n = 0;  ///< how many", "              ///< there are", "  int m;", "};"])
        self.assertEqual(shown(H, "/* Why? */", "", "/* Frees it. */", "void f(void);", "  int n; /* how many */"),
                         ["/** @file", " * Why? */", "", "/** Frees it. */", "void f(void);", "  int n; /**< how many */"])

    def test_programs_in_comments_are_shown_as_they_are_and_words_are_no_commands(self):
        self.assertEqual(shown(HPP, "", "/// To <file>:", "///", "///   f(#x);", "/// and #more."),
                         ["", "/// To \\<file>:", "///", "/// @code{.cpp}", "///   f(#x);", "/// @endcode", "/// and \\#more."])

    def test_a_wrong_comment_stops_the_making(self):
        if not shutil.which("doxygen"):
            self.skipTest("doxygen is not here; ./dev docs installs it")
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            for path in (*public_headers.public_headers(ROOT), Path("cmake/PackagingAdapters.cmake"), Path("docs/reference/doxygen.conf"),
                         Path("docs/reference/main.dox")):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, tree / path)
            header = tree / "bus" / "result.hpp"
            header.write_text(header.read_text() + "/// @param nothing is not there\nvoid wrong(int there);\n")
            (Path(folder) / "html").mkdir()
            with self.assertRaises(docs.Stop) as stopped:
                docs.make_cpp(tree, Path(folder) / "work", Path(folder) / "html", "1.2.3")
            self.assertIn("nothing", str(stopped.exception))
            self.assertEqual(stopped.exception.status, 1)

    def test_a_link_that_leads_nowhere_stops_it(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "index.html"
            page.write_text('<a href="index.html#x">a</a> <a href="https://nowhere.example/">b</a>')
            self.assertEqual(docs.check_links(Path(folder)), 1)
            page.write_text('<a href="gone.html">a</a>')
            with self.assertRaises(docs.Stop) as stopped:
                docs.check_links(Path(folder))
            self.assertIn("index.html: gone.html is not there", str(stopped.exception))

    def test_the_reference_is_made_without_a_warning(self):
        if not os.environ.get("RINGMAIN_PYTHON"):
            self.skipTest("the Python package was not built (RINGMAIN_BUILD_PYTHON)")
        if not shutil.which("doxygen"):
            self.skipTest("doxygen is not here; ./dev docs installs it, and Sphinx")
        build = Path(os.environ["RINGMAIN_BUILD"])
        made = subprocess.run([sys.executable, str(ROOT / "tools" / "docs.py"), str(ROOT), str(build), os.environ["RINGMAIN_PYTHON"],
                               str(build / "docs")], capture_output=True, text=True, check=False)
        if made.returncode == 2:
            self.skipTest(made.stderr.strip())
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        html = build / "docs" / "html"
        for page, word in (("python.html", "ringmain.Bus.subscribe_inline"), ("cpp/classringmain_1_1Bus.html", "subscribe_ordered"),
                           ("cpp/ringmain_8h.html", "ringmain_mailbox_take"), ("commands.html", "ringmain fr analyze"),
                           ("docs/cookbook.html", "How do I publish an event, and hear it?")):
            self.assertIn(word, (html / page).read_text(), page)


if __name__ == "__main__":
    sys.exit(main())
