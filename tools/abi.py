#!/usr/bin/env python3
"""What has been lost or changed since it was recorded, of the interface that compiled programs rely on?

It compares the C ABI (bindings/c/ringmain.h, adapters/collective.h), what sources' libraries call of a run (adapters/run.h),
the table of a plugin (adapters/plugin_table.hpp) and the layout of every event. abidiff compares functions and structs, by a library
of empty functions made from these headers, with tests/abi/recorded.abi; constants, events and virtual functions are
lines of tests/abi/recorded.txt. Names inside the C++ libraries change freely and are not looked at.

usage: ./dev abi [--update]     abi.py [--update] BUILD_FOLDER
  --update   record the interface of today: after a release, or with a change that docs/compatibility.md allows

Exit status: 0 nothing, or only additions; 1 something was changed or is gone; 2 wrong usage; 77 there is no abidiff.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "abi"
HEADERS = ("bindings/c/ringmain.h", "adapters/collective.h", "adapters/run.h", "adapters/plugin_table.hpp")
# Which library has the functions of a header; those of the last header are in a plugin.
LIBRARIES = {"bindings/c/ringmain.h": "libringmain.so", "adapters/collective.h": "libringmain_collective.so",
             "adapters/run.h": "libringmain_run.so"}
ABIDW = ("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--type-id-style", "hash")
SKIPPED = 77


def run(*command, expected=(0,)):
    try:
        ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"there is no {command[0]}: build all targets of that folder first")
    if ended.returncode not in expected:
        raise SystemExit(f"{command[0]} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def compiler():
    return os.environ.get("CXX", "c++")


def declared(header):
    """The functions of a header: their names and declarations."""
    text = run(compiler(), "-x", "c++", "-std=c++20", "-E", "-P", header)
    found = {}
    for words in (" ".join(part.split()) for part in re.split(r"[;{}]", text)):
        function = re.search(r"\b(ringmain_\w+)\s?\([^()]*\)( noexcept)?$", words)
        if function and not words.startswith("typedef"):
            found[function[1]] = words
    return found


def constants(header):
    """The enumerators and the numbers that a header defines, as lines of the record."""
    text = run(compiler(), "-x", "c++", "-std=c++20", "-E", "-P", header)
    macros = run(compiler(), "-x", "c++", "-std=c++20", "-E", "-dM", header)
    found = re.findall(r"\b(RINGMAIN_\w+) = (-?\w+)", text) + re.findall(r"#define (RINGMAIN_\w+) (\d+)$", macros, re.M)
    return {f"constant {name}": value for name, value in found}


def empty_library(headers, folder):
    """A library of functions that do nothing, declared by the headers, with debug information."""
    source, library = Path(folder) / "interface.cpp", Path(folder) / "libinterface.so"
    lines = [f'#include "{header}"' for header in headers]
    for header in headers:
        lines += [f"{words} {{ __builtin_trap(); }}" for words in declared(header).values()]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # Clang leaves out structs that are only pointed to, and abidiff takes a missing struct for equal to any other.
    whole = ["-fstandalone-debug"] if "clang" in run(compiler(), "--version") else []
    run(compiler(), "-std=c++20", "-g", *whole, "-w", "-shared", "-fPIC", source, "-o", library)
    return library


def differences(recorded, library):
    """What abidiff says of functions and structs: (breaks, additions), a text each at most."""
    def abidiff(*options):
        # 4: something differs, 8: something is gone.
        return run("abidiff", "--no-show-locs", "--harmless", *options, recorded, library, expected=(0, 4, 12))

    counts = re.findall(r"(\d+) (Removed|Changed|Added)", abidiff())
    if not any(int(number) for number, _ in counts):
        return [], []
    # Each change once, at the type or function that has it.
    said = re.sub(r"^.*summary:.*\n+", "", abidiff("--leaf-changes-only"), flags=re.M).strip()
    if any(int(number) for number, kind in counts if kind != "Added"):
        return [said], []
    return [], [said]


def lines_of(text):
    """'event a.b: 8 bytes' … as a dictionary from the text before the colon to the text after it."""
    return dict(line.split(": ", 1) for line in text.splitlines() if line)


def changed_lines(recorded, current):
    """(breaks, additions) between two such dictionaries, a sentence each."""
    breaks = [f"{name} is gone; it was {was}" for name, was in recorded.items() if name not in current]
    breaks += [f"{name} was {was}, and is {current[name]}" for name, was in recorded.items()
               if current.get(name, was) != was]
    return breaks, [f"{name} is new: {now}" for name, now in current.items() if name not in recorded]


def not_exported(build):
    """Functions of a header that its library does not export."""
    lost = []
    for header, library in LIBRARIES.items():
        symbols = run("nm", "-D", "--defined-only", Path(build) / "lib" / library)
        shown = {line.split()[-1].partition("@")[0] for line in symbols.splitlines() if line}
        lost += [f"{library} does not export {name} of {header}" for name in declared(ROOT / header) if name not in shown]
    return lost


def version(root=None):
    """'0.1': what programs ask a library for before 1.0; '1' after it."""
    major, minor = re.search(r"project\(ringmain VERSION (\d+)\.(\d+)", ((root or ROOT) / "CMakeLists.txt").read_text()).groups()
    return f"0.{minor}" if major == "0" else major


def released(of, root=None):
    """Was an interface of that version ever released?"""
    return re.search(rf"^## \[?{re.escape(of)}\.", ((root or ROOT) / "CHANGELOG.md").read_text(encoding="utf-8"), re.M) is not None


def current_lines(build):
    lines = {"interface": version()}
    for header in HEADERS:
        lines |= constants(ROOT / header)
    return lines | lines_of(run(Path(build) / "bin" / "ringmain_described"))


def update(library, lines, breaks):
    recorded = lines_of((RECORD / "recorded.txt").read_text()) if (RECORD / "recorded.txt").exists() else {}
    of = recorded.get("interface", lines["interface"])
    if breaks and of == lines["interface"] and released(of):
        print(f"Interface {of} was released and what is recorded of it stays: raise the version in CMakeLists.txt first.")
        return 1
    (RECORD / "recorded.abi").write_text(run(*ABIDW, library), encoding="utf-8")
    (RECORD / "recorded.txt").write_text("".join(f"{name}: {value}\n" for name, value in lines.items()), encoding="utf-8")
    print(f"recorded: interface {lines['interface']}, {len(lines)} lines beside what abidiff compares")
    return 0


def report(breaks, additions):
    """One paragraph that says what changed and what to do; returns the exit status."""
    for line in breaks + additions:
        print(line)
    if breaks:
        print("\nPrograms, plugins or sinks that were built before would go wrong or be refused. Undo it, or, if "
              "docs/compatibility.md allows it: raise the minor version in CMakeLists.txt where the recorded one was "
              "released, say it in CHANGELOG.md, and run ./dev abi --update.")
        return 1
    if additions:
        print("\nOnly additions: what was built before works on.")
    else:
        print("The interface is the recorded one.")
    return 0


def main():
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(__doc__)
        return 0
    records = "--update" in arguments
    builds = [word for word in arguments if word != "--update"]
    if len(builds) != 1 or builds[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    if not shutil.which("abidiff"):
        print("skipped: there is no abidiff; on Debian: apt-get install abigail-tools")
        return SKIPPED
    lines = current_lines(builds[0])
    with tempfile.TemporaryDirectory(prefix="ringmain-abi-") as folder:
        library = empty_library([ROOT / header for header in HEADERS], folder)
        breaks, additions = not_exported(builds[0]), []
        if (RECORD / "recorded.abi").exists():
            was = {**lines_of((RECORD / "recorded.txt").read_text()), "interface": lines["interface"]}
            for lost, new in (differences(RECORD / "recorded.abi", library), changed_lines(was, lines)):
                breaks, additions = breaks + lost, additions + new
        elif not records:
            print("Nothing is recorded yet; run ./dev abi --update")
            return 1
        return update(library, lines, breaks) if records else report(breaks, additions)


if __name__ == "__main__":
    sys.exit(main())
