#!/usr/bin/env python3
"""Do the Debian packages hold what a clean system needs, and does Debian's own check accept them?

The release is built again as packages want it, which costs the compiler's cache a look and the linker its work.

usage: deb_test.py BUILD_FOLDER, with CXX the compiler of that build, and RINGMAIN_PYTHON the Python that it was made for, if any
"""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from commands import run

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
COMPILER = os.environ.get("CXX", "c++")
PYTHON = os.environ.get("RINGMAIN_PYTHON")
SYSTEM_PYTHON = "/usr/bin/python3"
TOOLS = ("dpkg-deb", "dpkg-shlibdeps", "cpack", "ccache")
# What lintian may warn of; docs/packages.md says why. An error is never accepted.
ACCEPTED = {"initial-upload-closes-no-bugs", "no-manual-page", "maintscript-calls-ldconfig"}

HEARD = """import ringmain
bus = ringmain.Bus()
heard = []
@ringmain.event("deb.tick")
class Tick:
    id: int
seen = bus.subscribe("deb.*", lambda events: heard.extend(events.array["id"]))
for number in range(3):
    bus.publish(Tick(number))
bus.flush(60)
print(len(heard))
"""


def system_python_is_that_of_the_build():
    """Debian has one Python 3, and a package of a module is for that."""
    versions = {subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False).stdout
                for python in (PYTHON, SYSTEM_PYTHON) if python and Path(python).exists()}
    return len(versions) == 1 and PYTHON is not None and Path(SYSTEM_PYTHON).exists()


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [tool for tool in TOOLS if not shutil.which(tool)]
        if missing:
            raise unittest.SkipTest(f"packages are not made here without {', '.join(missing)}")
        folder = tempfile.TemporaryDirectory(prefix="ringmain-deb-")
        cls.addClassCleanup(folder.cleanup)
        # As deep as the release, so that the cache knows the relative names.
        cls.work, tree = Path(folder.name), BUILD.with_name("deb")
        environment = {"CCACHE_BASEDIR": os.environ.get("CCACHE_BASEDIR", str(SOURCE)), "DEBEMAIL": ""}
        cls.python = system_python_is_that_of_the_build()
        python = ["-DRINGMAIN_BUILD_PYTHON=ON", f"-DPython_EXECUTABLE={PYTHON}"] if cls.python else ["-DRINGMAIN_BUILD_PYTHON=OFF"]
        run("cmake", "--preset", "deb", "-S", SOURCE, "-B", tree, f"-DCMAKE_CXX_COMPILER={COMPILER}", *python, **environment)
        run("cmake", "--build", tree, **environment)
        shutil.rmtree(tree / "packages", ignore_errors=True)
        run("cpack", "-G", "DEB", "--config", tree / "CPackConfig.cmake", **environment)
        cls.files = sorted((tree / "packages").glob("*.deb"))
        cls.named = {run("dpkg-deb", "--field", path, "Package").strip(): path for path in cls.files}
        cls.root = cls.work / "root"
        for path in cls.files:
            run("dpkg-deb", "--extract", path, cls.root)
        cls.usr = cls.root / "usr"
        cls.library_folder = next(cls.usr.rglob("libringmain.so")).parent
        cls.library = next(name for name in cls.named if re.fullmatch(r"libringmain[0-9.]+", name))

    def field(self, package, name):
        return run("dpkg-deb", "--field", self.named[package], name).strip()

    def test_each_asks_for_the_libraries_of_the_same_version(self):
        others = ["libringmain-dev", "ringmain"] + (["python3-ringmain"] if self.python else [])
        self.assertEqual(sorted(self.named), sorted([self.library, *others]))
        version = self.field(self.library, "Version")
        for package in others:
            self.assertIn(f"{self.library} (= {version})", self.field(package, "Depends"))
        if self.python:  # it loads what that one holds
            self.assertIn(f"ringmain (= {version}), python3 (>= 3", self.field("python3-ringmain", "Depends"))
        self.assertIn("libc6 (>=", self.field(self.library, "Depends"))
        self.assertIn("libc6 (>=", self.field("ringmain", "Depends"))

    def test_no_file_is_in_two_and_each_has_copyright_and_changelog(self):
        seen = set()
        for package, path in self.named.items():
            held = {line.split()[5] for line in run("dpkg-deb", "--contents", path).splitlines() if line[0] != "d"}
            self.assertEqual(held & seen, set())
            seen |= held
            self.assertIn(f"./usr/share/doc/{package}/copyright", held)
            changelog = self.usr / "share" / "doc" / package / "changelog.Debian.gz"
            self.assertTrue(gzip.decompress(changelog.read_bytes()).startswith(b"ringmain ("))

    def test_programs_are_stripped_and_look_in_the_systems_folders_only(self):
        checked = 0
        for path in self.usr.rglob("*"):
            if not path.is_file() or path.is_symlink() or path.read_bytes()[:4] != b"\x7fELF":
                continue
            self.assertNotRegex(run("readelf", "--dynamic", "--wide", path, LC_ALL="C"), r"\((RPATH|RUNPATH)\)", path)
            self.assertNotIn(" .symtab ", run("readelf", "--sections", "--wide", path, LC_ALL="C"), path)
            checked += 1
        self.assertGreater(checked, 5)

    def test_a_program_is_built_against_them_and_runs(self):
        build = self.work / "consumer"
        run("cmake", "-S", HERE / "consumer", "-B", build, f"-DCMAKE_PREFIX_PATH={self.usr}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}", "-DCMAKE_LIBRARY_ARCHITECTURE=" + self.library_folder.name)
        run("cmake", "--build", build)
        self.assertEqual(run(build / "consumer", LD_LIBRARY_PATH=str(self.library_folder)), "sum 5050\n")

    def test_the_program_runs_and_loads_itself_into_others(self):
        program, found = self.usr / "bin" / "ringmain", {"LD_LIBRARY_PATH": str(self.library_folder)}
        self.assertIn(self.field("ringmain", "Version").partition("-")[0], run(program, "--version", **found))
        self.assertEqual(run(program, "run", "--summary", "--", "echo", "ran", **found), "ran\n")
        page = gzip.decompress((self.usr / "share" / "man" / "man1" / "ringmain.1.gz").read_bytes()).decode()
        self.assertEqual(page, run(program, "man", **found))

    def test_the_systems_python_says_and_hears_and_finds_what_the_others_hold(self):
        if not self.python:
            self.skipTest(f"{PYTHON or 'no Python'} of the build is not of the version of {SYSTEM_PYTHON}")
        modules = self.usr / "lib" / "python3" / "dist-packages"
        numpy = run(PYTHON, "-c", "import numpy, pathlib; print(pathlib.Path(numpy.__file__).parents[1])").strip()
        (self.work / "numpy-alone").mkdir()
        for part in Path(numpy).glob("numpy*"):
            (self.work / "numpy-alone" / part.name).symlink_to(part)
        found = {"LD_LIBRARY_PATH": str(self.library_folder), "PYTHONPATH": f"{modules}:{self.work / 'numpy-alone'}", "PYTHONDONTWRITEBYTECODE": "1"}
        self.assertEqual(run(SYSTEM_PYTHON, "-c", HEARD, **found), "3\n")
        plugin = run(SYSTEM_PYTHON, "-c", "import ringmain.cuda, ringmain.nccl; from ringmain import _cuda_library, _nccl_library\n"
                     "_cuda_library.load(); print(_nccl_library.load().plugin())", **found).strip()
        self.assertTrue(Path(plugin).exists(), plugin)
        self.assertIn(self.field("ringmain", "Version").partition("-")[0], run(SYSTEM_PYTHON, "-m", "ringmain", "--version", **found))
        self.assertIn("ringmain = ringmain_autoload:autoload", next(modules.glob("ringmain-*.dist-info")).joinpath("entry_points.txt").read_text())
        links = [path for path in modules.rglob("*") if path.is_symlink()]
        self.assertGreater(len(links), 5)
        self.assertEqual([path for path in links if not path.exists()], [])

    def test_lintian_has_no_errors(self):
        if not shutil.which("lintian"):
            self.skipTest("there is no lintian here (Debian package lintian)")
        said = subprocess.run(["lintian", "--allow-root", *map(str, self.files)], capture_output=True, text=True, check=False)
        self.assertEqual([line for line in said.stdout.splitlines() if line[:1] == "E"], [])
        tags = {line.split()[2] for line in said.stdout.splitlines() if line[:1] == "W"}
        self.assertLessEqual(tags, ACCEPTED, said.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
