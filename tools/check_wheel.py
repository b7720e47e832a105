#!/usr/bin/env python3
"""Is a wheel whole, and does it work on the systems that its name promises?  check_wheel.py WHEEL [--absent PATH]…

Looked at are its files for the loader: each finds the libraries that it needs in the wheel, by $ORIGIN, or they are the system's
own; each symbol is somebody's; none asks for a newer C library than a manylinux_2_N in the name promises. An abi3 wheel has an
abi3 module, and its list of files is right. No file names a path of --absent, of the machine that built it. Says what is wrong, a line each, and ends with 1.
"""

import argparse
import base64
import csv
import hashlib
import posixpath
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2",
          "ld-linux-aarch64.so.1"}
# What Debian and its like have beside: a wheel for other systems carries it.
ALLOWED_HERE = re.compile(r"lib(simdjson|z)\.so\.\d+")
# What the program has that loads the file: Python's, an MPI's, or a preload's wrapped one.
PROGRAMS = re.compile(r"_?Py|P?MPI_|ompi_|MPIR_|mpich_")
TAGGED = re.compile(r"(.*/)?ringmain-[^-]+-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl")


def readelf(path):
    return subprocess.run(["readelf", "--wide", "--dynamic", "--dyn-syms", "--version-info", str(path)], capture_output=True, text=True,
                          check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


class Loaded:
    """What the loader reads of one file."""

    def __init__(self, name, path):
        self.name = name
        text = readelf(path)
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
        self.soname = (re.findall(r"\(SONAME\).*\[(.*)\]", text) or [posixpath.basename(name)])[0]
        self.has_rpath = "(RPATH)" in text
        self.places = [place for line in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", text) for place in line.split(":")]
        self.glibc = [tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+) ", text)]
        self.has, self.wants = set(), set()
        for bind, section, symbol in re.findall(r"^\s*\d+: \S+\s+\S+ \w+\s+(\w+)\s+\w+\s+(?:\[.*\]\s+)?(\S+) (\S+)", text, re.MULTILINE):
            bare, _, version = symbol.partition("@")
            if section != "UND":
                self.has.add(bare)
            elif bind == "GLOBAL" and not version:
                self.wants.add(bare)

    def places_in_wheel(self):
        here = posixpath.dirname(self.name)
        return [posixpath.normpath(place.replace("$ORIGIN", here)) for place in self.places]


def about(files, platform):
    """What is wrong with these files in a wheel for this platform."""
    promised = re.search(r"manylinux_2_(\d+)", platform)
    at = {posixpath.join(posixpath.dirname(file.name), file.soname) for file in files}
    exported = {symbol for file in files for symbol in file.has}
    for file in files:
        for place in file.places:
            if not place.startswith("$ORIGIN"):
                yield f"{file.name} looks for libraries in {place}, which is no place of the wheel"
        if file.has_rpath:
            yield f"{file.name} has an RPATH, which LD_LIBRARY_PATH does not go before, and wants a RUNPATH"
        for library in file.needed:
            if library in SYSTEM:
                continue
            if not promised and ALLOWED_HERE.fullmatch(library):
                file.wants.clear()  # some of it is there
                continue
            if not any(posixpath.join(place, library) in at for place in file.places_in_wheel()):
                yield f"{file.name} needs {library}, which it does not find in the wheel"
        newest = max(file.glibc, default=(0,))
        if promised and newest > (2, int(promised[1])):
            yield f"{file.name} needs glibc {'.'.join(map(str, newest))}, and the wheel's name promises {promised[0]}"
        for symbol in sorted(file.wants - exported):
            if not PROGRAMS.match(symbol):
                yield f"{file.name} wants {symbol}, which nobody has"


def recorded(archive):
    """What of its files the wheel's own list has not, or has otherwise."""
    lists = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
    rows = {row[0]: row[1] for name in lists for row in csv.reader(archive.read(name).decode().splitlines())}
    for name in archive.namelist():
        digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).decode().rstrip("=")
        if not name.endswith("/") and name not in lists and rows.get(name) != f"sha256={digest}":
            yield f"RECORD, the wheel's list of its files, has not {name} as it is"


def check(wheel, absent=()):
    """What is wrong with a wheel, and how many files for the loader it has."""
    tags = TAGGED.fullmatch(str(wheel))
    if tags is None:
        return [f"{wheel.name} is no name of a wheel of ringmain"], 0
    wrong, files = [], []
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        wrong += recorded(archive)
        for name in archive.namelist():
            content = archive.read(name)
            wrong += [f"{name} names {path}" for path in absent if str(path).encode() in content]
            if content.startswith(b"\x7fELF"):
                path = Path(folder, "file")
                path.write_bytes(content)
                files.append(Loaded(name, path))
    wrong += about(files, tags["platform"])
    modules = [file.name for file in files if "_native" in file.name]
    if len(modules) != 1 or (tags["abi"] == "abi3") != modules[0].endswith(".abi3.so"):
        wrong.append(f"the wheel's ABI is {tags['abi']}, and its module {', '.join(modules) or 'not there'}")
    return wrong, len(files)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("wheel", type=Path)
    arguments.add_argument("--absent", action="append", default=[], help="a path that no file may name")
    chosen = arguments.parse_args()
    try:
        wrong, files = check(chosen.wheel, chosen.absent)
    except (OSError, zipfile.BadZipFile, subprocess.CalledProcessError) as error:
        wrong, files = [f"{chosen.wheel}: {error}"], 0
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{chosen.wheel.name}: {files} files for the loader, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
