#!/usr/bin/env python3
"""Does tools/abi.py find what breaks a program that was built before, and let additions pass?

Each test changes a copy of the headers and asks what the tool says of it, with today's headers as the record.

usage: abi_test.py BUILD_FOLDER
"""

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import abi  # noqa: E402

C_HEADER, PLUGIN_TABLE = "bindings/c/ringmain.h", "adapters/plugin_table.hpp"
C_RECORD_HEADER, C_VISIT_HEADER = "bindings/c/ringmain_record.h", "bindings/c/ringmain_visit.h"


class Changed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-abi-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def change(self, name, old, new):
        """A copy of the header with `new` in place of `old`, and without assertions, which would see it first."""
        text = (ROOT / name).read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1, f"{name} has changed; '{old}' is to stand there once")
        copy = self.folder / Path(name).name
        if name == C_HEADER:
            for included in (C_RECORD_HEADER, C_VISIT_HEADER):
                shutil.copy(ROOT / included, self.folder)
        copy.write_text(re.sub(r"^static_assert\(.*?\);$", "", text.replace(old, new), flags=re.M | re.S), encoding="utf-8")
        return copy

    def compared(self, name, old, new):
        """What the tool says of functions and structs: (breaks, additions)."""
        recorded = self.folder / "recorded.abi"
        recorded.write_text(abi.run(*abi.ABIDW, abi.empty_library([ROOT / name], self.folder)), encoding="utf-8")
        return abi.differences(recorded, abi.empty_library([self.change(name, old, new)], self.folder))

    def assert_breaks(self, name, old, new, *words):
        breaks, additions = self.compared(name, old, new)
        self.assertEqual((len(breaks), additions), (1, []))
        for word in words:
            self.assertIn(word, breaks[0])


class Functions(Changed):
    def test_nothing_changed_is_nothing_found(self):
        self.assertEqual(self.compared(C_HEADER, "/* --- publish --- */", "/* --- say --- */"), ([], []))

    def test_one_that_is_gone_is_found(self):
        self.assert_breaks(C_HEADER, "uint64_t ringmain_new_op_id(void);", "", "ringmain_new_op_id", "Removed")

    def test_another_argument_is_found(self):
        self.assert_breaks(C_HEADER, "ringmain_flush(ringmain_bus* bus, int64_t limit_ns);",
                           "ringmain_flush(ringmain_bus* bus, int32_t limit_ns);", "ringmain_flush")
        self.assert_breaks(C_HEADER, "ringmain_flush(ringmain_bus* bus, int64_t limit_ns);",
                           "ringmain_flush(ringmain_bus* bus);", "ringmain_flush")

    def test_another_result_is_found(self):
        self.assert_breaks(C_HEADER, "uint64_t ringmain_new_op_id(void);", "uint32_t ringmain_new_op_id(void);",
                           "ringmain_new_op_id")
        self.assert_breaks(C_HEADER, "typedef int32_t ringmain_code;", "typedef int64_t ringmain_code;")

    def test_an_argument_of_a_callback_is_found(self):
        self.assert_breaks(C_HEADER, "typedef void (*ringmain_destroy_fn)(void* user);",
                           "typedef void (*ringmain_destroy_fn)(void* user, int why);")

    def test_a_new_one_is_an_addition(self):
        breaks, additions = self.compared(C_HEADER, "uint64_t ringmain_new_op_id(void);",
                                          "uint64_t ringmain_new_op_id(void);\nuint64_t ringmain_new_id(void);")
        self.assertEqual(breaks, [])
        self.assertIn("ringmain_new_id", additions[0])


class Structs(Changed):
    def test_a_longer_one_is_found(self):
        self.assert_breaks(C_HEADER, "  uint64_t slow; /*", "  uint64_t slow, slower; /*", "ringmain_subscription_stats",
                           "slower")

    def test_a_member_of_another_type_or_name_or_place_is_found(self):
        self.assert_breaks(C_HEADER, "  int32_t worker_nice; ", "  uint32_t worker_nice; ", "ringmain_bus_options")
        self.assert_breaks(C_HEADER, "  int32_t worker_nice; ", "  int32_t nice; ", "ringmain_bus_options")
        self.assert_breaks(PLUGIN_TABLE, "  const char* kind;  // \"source\", \"sink\" or \"bridge\"\n  const char* name;\n",
                           "  const char* name;\n  const char* kind;\n", "ringmain_plugin_provider_v1")

    def test_the_table_of_plugins_is_looked_at(self):
        self.assert_breaks(PLUGIN_TABLE, "  char text[508];", "  char text[252];", "ringmain_plugin_error")
        self.assert_breaks(PLUGIN_TABLE, "ringmain_plugin_error* error);", "ringmain_plugin_error* error, int more);",
                           "ringmain_plugin_provider_v1")


class Lines(Changed):
    """Constants, events and virtual functions."""

    def constants(self, old, new):
        return abi.changed_lines(abi.constants(ROOT / C_HEADER), abi.constants(self.change(C_HEADER, old, new)))

    def test_a_constant_with_another_number_is_found(self):
        breaks, additions = self.constants("RINGMAIN_CLOSED = 3, ", "RINGMAIN_CLOSED = 9, ")
        self.assertEqual((breaks, additions), (["constant RINGMAIN_CLOSED was 3, and is 9"], []))
        breaks, _ = self.constants("#define RINGMAIN_EVENT_BYTES_MAX 1024", "#define RINGMAIN_EVENT_BYTES_MAX 512")
        self.assertEqual(breaks, ["constant RINGMAIN_EVENT_BYTES_MAX was 1024, and is 512"])

    def test_a_constant_that_is_gone_is_found_and_a_new_one_is_an_addition(self):
        breaks, additions = self.constants("RINGMAIN_CLOSED = 3, ", "RINGMAIN_ENDED = 3, ")
        self.assertEqual(breaks, ["constant RINGMAIN_CLOSED is gone; it was 3"])
        self.assertEqual(additions, ["constant RINGMAIN_ENDED is new: 3"])

    def described(self):
        """What the program that describes events prints, built from the copy of the headers in this folder."""
        (how,) = [one for one in json.loads((BUILD / "compile_commands.json").read_text())
                  if one["file"] == str(ROOT / "tests/abi/described.cpp")]
        words = shlex.split(how["command"].replace(f"{ROOT}/tests", f"{self.folder}/tests"))
        words = [str(self.folder) if word == str(ROOT) else word for word in words]
        words = words[next(i for i, word in enumerate(words) if "++" in Path(word).name):]  # without ccache
        place = words.index("-o")
        program = self.folder / "described"
        words[place + 1] = str(program)
        words.remove("-c")
        subprocess.run([*words, "-O0", BUILD / "lib/libringmain.so", f"-Wl,-rpath,{BUILD / 'lib'}"], check=True,
                       cwd=how["directory"], stderr=subprocess.DEVNULL)
        return abi.lines_of(abi.run(program))

    def test_events_and_virtual_functions_that_moved_are_found(self):
        before = abi.lines_of(abi.run(BUILD / "bin" / "ringmain_described"))
        for room in ("engine", "bus", "events", "adapters", "tests/abi"):
            shutil.copytree(ROOT / room, self.folder / room)
        flow = self.folder / "events/replay.hpp"
        flow.write_text(re.sub(r"(struct Flow \{\n)(.*\n)(.*\n)", r"\1\3\2", flow.read_text()))  # id and name
        idle = "  virtual void idle() {}\n"
        (sink,) = [header for header in (self.folder / "adapters").glob("*.hpp") if idle in header.read_text()]
        sink.write_text(sink.read_text().replace(idle, "  virtual void before_idle() {}\n" + idle))
        breaks, additions = abi.changed_lines(before, self.described())
        self.assertEqual(additions, [])
        found = "\n".join(breaks)
        self.assertIn("event replay.flow.name was name, 4 bytes at 8, and is name, 4 bytes at 0", found)
        self.assertRegex(found, r"event replay\.flow was 32 bytes, hash [0-9a-f]{16}, and is 32 bytes, hash")
        self.assertIn("plugin Sink.idle was virtual function 3, and is virtual function 4", found)
        self.assertEqual({line.split()[1].split(".")[1] for line in breaks if line.startswith("event")}, {"flow"})


class Verdict(Changed):
    def said(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return abi.report(*arguments), out.getvalue()

    def test_what_breaks_ends_with_1_and_says_what_to_do(self):
        status, out = self.said(["a was 1, and is 2"], ["b is new: 3"])
        self.assertEqual(status, 1)
        for words in ("a was 1, and is 2\nb is new: 3\n", "./dev abi --update", "docs/compatibility.md"):
            self.assertIn(words, out)

    def test_additions_end_with_0_and_are_told(self):
        self.assertEqual(self.said([], ["b is new: 3"]), (0, "b is new: 3\n\nOnly additions: what was built before works on.\n"))
        self.assertEqual(self.said([], []), (0, "The interface is the recorded one.\n"))

    def tree(self, version, changelog):
        (self.folder / "CMakeLists.txt").write_text(f"project(ringmain VERSION {version} LANGUAGES CXX)\n")
        (self.folder / "CHANGELOG.md").write_text(changelog)
        return self.folder

    def updated(self, changelog, breaks):
        """Records an interface in this folder, which holds another one; returns the exit status and the record after it."""
        tree = self.tree("0.1.0", changelog)
        (tree / "recorded.abi").write_text("<abi-corpus/>\n")
        (tree / "recorded.txt").write_text("interface: 0.1\na: 1\n")
        library = abi.empty_library([ROOT / PLUGIN_TABLE], tree)
        with unittest.mock.patch.object(abi, "RECORD", tree), unittest.mock.patch.object(abi, "ROOT", tree), \
                contextlib.redirect_stdout(io.StringIO()):
            status = abi.update(library, {"interface": "0.1", "a": "2"}, breaks)
        return status, (tree / "recorded.txt").read_text(), "ringmain_plugin_error" in (tree / "recorded.abi").read_text()

    def test_before_the_release_an_update_records_what_breaks(self):
        self.assertEqual(self.updated("## Unreleased\n", ["a was 1, and is 2"]), (0, "interface: 0.1\na: 2\n", True))

    def test_a_released_interface_is_not_recorded_anew_unless_it_only_grew(self):
        released = "## Unreleased\n\n## 0.1.0\n"
        self.assertEqual(self.updated(released, ["a was 1, and is 2"]), (1, "interface: 0.1\na: 1\n", False))
        self.assertEqual(self.updated(released, []), (0, "interface: 0.1\na: 2\n", True))

    def test_the_version_of_an_interface_is_0_minor_before_1_0(self):
        self.assertEqual(abi.version(self.tree("0.12.3", "")), "0.12")
        self.assertEqual(abi.version(self.tree("2.1.0", "")), "2")

    def test_an_interface_is_released_once_the_changelog_has_its_version(self):
        self.assertFalse(abi.released("0.1", self.tree("0.1.0", "## Unreleased\n- as 0.1.0 had\n## 0.10.0\n")))
        self.assertTrue(abi.released("0.1", self.tree("0.1.0", "## Unreleased\n\n## 0.1.0\n")))
        self.assertTrue(abi.released("0.1", self.tree("0.1.0", "## [0.1.2] - 2027-01-01\n")))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    BUILD = Path(sys.argv.pop(1)).resolve()
    if not shutil.which("abidiff"):
        print("skipped: there is no abidiff; on Debian: apt-get install abigail-tools")
        sys.exit(abi.SKIPPED)
    unittest.main()
