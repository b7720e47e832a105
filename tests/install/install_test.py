#!/usr/bin/env python3
"""Can a program of somebody else be built against an installed copy, by CMake and by pkg-config?

The build under test is installed twice and then moved; the programs see nothing but the copy.

usage: install_test.py BUILD_FOLDER, with CXX the compiler to use
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from commands import run

HERE = Path(__file__).resolve().parent
CONSUMER = HERE / "consumer"
PLUGIN = HERE.parents[1] / "examples" / "plugin"
TRACE = HERE.parents[1] / "examples" / "traces" / "ddp_gloo_rank0.json.gz"
COMPILER = os.environ.get("CXX", "c++")
# pkg-config's users see our headers as their own: what warns there, optimised, breaks their build.
WARNINGS = ("-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wnon-virtual-dtor", "-Werror")
C_WARNINGS = tuple(word for word in WARNINGS if word != "-Wnon-virtual-dtor")
EXAMPLES = HERE.parents[1] / "examples"
SUM = "sum 5050\n"


def entries(path, kind):
    """What the dynamic section of a program or library says of that kind: SONAME, NEEDED."""
    lines = run("readelf", "--dynamic", "--wide", path, LC_ALL="C").splitlines()
    return [line.partition("[")[2].rstrip("]") for line in lines if f"({kind})" in line]


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ringmain-install-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.work = Path(cls.folder.name)
        first, cls.prefix = cls.work / "first", cls.work / "moved here"
        run("cmake", "--install", BUILD, "--prefix", first)
        once = cls.contents(first)
        run("cmake", "--install", BUILD, "--prefix", first)
        cls.once_and_twice = once, cls.contents(first)
        first.rename(cls.prefix)
        cls.library_folder = next(cls.prefix.rglob("libringmain.so")).parent

    @staticmethod
    def contents(prefix):
        return {path.relative_to(prefix): (path.readlink() if path.is_symlink() else path.read_bytes())
                for path in prefix.rglob("*") if not path.is_dir() or path.is_symlink()}

    def pkg_config(self, *options, package="ringmain"):
        return run("pkg-config", *options, package, PKG_CONFIG_PATH=str(self.library_folder / "pkgconfig"))

    def flags(self, *options, package="ringmain"):
        # The prefix has a space in its name, which pkg-config escapes: let a shell read the words.
        return run("bash", "-c", f"printf '%s\\n' {self.pkg_config(*options, package=package)}").splitlines()

    def test_a_cmake_project_finds_it_builds_and_runs(self):
        build = self.work / "by-cmake"
        run("cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "consumer"), SUM)

    def test_the_program_runs_from_where_it_was_moved_to(self):
        program = self.prefix / "bin" / "ringmain"
        if not program.exists() and os.environ["RINGMAIN_CLI"] == "OFF":
            self.skipTest("built without the program (RINGMAIN_BUILD_CLI)")
        version = self.pkg_config("--modversion").strip()
        self.assertIn(version, run(program, "--version", LD_LIBRARY_PATH=""))

    def test_the_manual_and_the_shells_words_lie_where_they_are_looked_for(self):
        program, share = self.prefix / "bin" / "ringmain", self.prefix / "share"
        if not program.exists() and os.environ["RINGMAIN_CLI"] == "OFF":
            self.skipTest("built without the program (RINGMAIN_BUILD_CLI)")
        for path, words in (("man/man1/ringmain.1", ("man",)), ("man/man1/ringmain-fr-merge.1", ("man", "fr", "merge")),
                            ("bash-completion/completions/ringmain", ("completion", "bash")),
                            ("zsh/site-functions/_ringmain", ("completion", "zsh")),
                            ("fish/vendor_completions.d/ringmain.fish", ("completion", "fish"))):
            self.assertEqual((share / path).read_text(), run(program, *words), path)

    def test_pkg_config_finds_it_and_a_strict_compiler_builds_it(self):
        program = self.work / "by-pkg-config"
        run(COMPILER, *WARNINGS, *self.flags("--cflags"), CONSUMER / "consumer.cpp", "-o", program,
            *self.flags("--libs"))
        self.assertEqual(run(program, LD_LIBRARY_PATH=str(self.library_folder)), SUM)

    def test_a_program_without_exceptions_and_rtti_gets_codes(self):
        program = self.work / "codes"
        for without in (("-fno-exceptions",), ("-fno-rtti",), ("-fno-exceptions", "-fno-rtti")):
            run(COMPILER, *WARNINGS, *without, *self.flags("--cflags"), CONSUMER / "codes.cpp", "-o", program, *self.flags("--libs"))
            ran = subprocess.run([program], capture_output=True, text=True, check=False,
                                 env={**os.environ, "LD_LIBRARY_PATH": str(self.library_folder)})
            self.assertEqual((ran.returncode, ran.stdout), (0, SUM))
            self.assertIn("Overflow::block", ran.stderr)

    def test_a_program_that_publishes_needs_one_header_and_no_other_library(self):
        program = self.work / "publishes"
        words = (COMPILER, *WARNINGS, *self.flags("--cflags"), CONSUMER / "publishes.cpp")
        run(*words, "-o", program, *self.flags("--libs"))
        run(program, LD_LIBRARY_PATH=str(self.library_folder))
        seen = run(*words, "-M")
        for absent in ("concurrentqueue", "/chrono", "/bus/bus.hpp", "/mutex"):
            self.assertNotIn(absent, seen)
        self.assertNotIn("concurrentqueue", run(COMPILER, *self.flags("--cflags"), CONSUMER / "consumer.cpp", "-M"))

    def test_a_program_may_link_it_statically(self):
        project = self.work / "static"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(one CXX)\nfind_package(ringmain REQUIRED COMPONENTS static)\n"
            f"add_executable(one [==[{CONSUMER / 'consumer.cpp'}]==])\ntarget_link_libraries(one ringmain::static)\n")
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", project / "build")
        self.assertEqual([n for n in entries(project / "build" / "one", "NEEDED") if n.startswith("libringmain")], [])
        self.assertEqual(run(project / "build" / "one"), SUM)

    def test_a_project_that_adds_it_builds_the_bus_alone(self):
        project = self.work / "adds"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(trainer CXX)\ninclude(FetchContent)\n"
            f"FetchContent_Declare(ringmain SOURCE_DIR [==[{HERE.parents[1]}]==])\nFetchContent_MakeAvailable(ringmain)\n"
            f"add_executable(trainer [==[{CONSUMER / 'consumer.cpp'}]==])\ntarget_link_libraries(trainer ringmain::ringmain)\n"
            "install(TARGETS trainer)\n")
        run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        steps = run("ninja", "-C", project / "build", "-n")
        self.assertIn("trainer", steps)
        for absent in ("ringmain-build/adapters", "ringmain-build/cli", "ringmain-build/tests", "ringmain-build/examples", "libringmain.a"):
            self.assertNotIn(absent, steps)
        self.assertNotIn("file(INSTALL", (project / "build" / "_deps" / "ringmain-build" / "cmake_install.cmake").read_text())

    def test_c_and_fortran_are_built_by_pkg_config_without_a_cxx_compiler(self):
        compile_flags, link_flags = (self.flags(o, package="ringmain-c") for o in ("--cflags", "--libs"))
        program = self.work / "from-c"
        run("cc", "-std=c99", *C_WARNINGS, *compile_flags, EXAMPLES / "from_c.c", "-o", program, *link_flags)
        self.assertIn("3 waited in the mailbox\n", run(program, LD_LIBRARY_PATH=str(self.library_folder)))
        if not shutil.which("gfortran"):
            self.skipTest("there is no gfortran here (Debian package gfortran)")
        program = self.work / "from-fortran"
        module = self.prefix / "include" / "ringmain" / "c" / "ringmain.f90"
        run("gfortran", "-Wall", "-Wextra", "-J", self.work, module, EXAMPLES / "from_fortran.f90", "-o", program,
            *link_flags)
        self.assertIn(", 4 heard\n", run(program, LD_LIBRARY_PATH=str(self.library_folder)))

    def test_programs_ask_for_the_libraries_of_their_version(self):
        major, minor = self.pkg_config("--modversion").strip().split(".")[:2]
        suffix = f".so.0.{minor}" if major == "0" else f".so.{major}"
        for name in ("ringmain", "ringmain_registry", "ringmain_collective", "ringmain_compile",
                     "ringmain_cuda", "ringmain_nccl", "ringmain_run"):
            path = self.library_folder / f"lib{name}{suffix}"
            self.assertEqual(entries(path, "SONAME"), [path.name])
        program = self.work / "asks-by-soname"
        run(COMPILER, *self.flags("--cflags"), CONSUMER / "consumer.cpp", "-o", program, *self.flags("--libs"))
        self.assertIn("libringmain" + suffix, entries(program, "NEEDED"))
        for path in (path for path in self.prefix.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"):
            needed = [name for name in entries(path, "NEEDED") if name.startswith("libringmain")]
            self.assertEqual([name for name in needed if not name.endswith(suffix)], [], path)

    def test_the_loader_refuses_a_library_of_another_version_and_says_which_is_missing(self):
        others = self.work / "another version"
        others.mkdir()
        (others / "others.map").write_text("RINGMAIN_9.9 { global: ringmain_*; local: *; };\n")
        (others / "others.c").write_text("unsigned ringmain_c_abi(void) { return 1; }\n")
        soname = entries(self.library_folder / "libringmain.so", "SONAME")[0]
        version = soname.partition(".so.")[2]
        run("cc", "-shared", "-fPIC", others / "others.c", f"-Wl,-soname,{soname},--version-script={others / 'others.map'}", "-o",
            others / soname)
        for node, program, source, package, words in (
                (f"RINGMAIN_{version}", others / "from-c", EXAMPLES / "from_c.c", "ringmain-c", ("cc", "-std=c99")),
                (f"RINGMAIN_CXX_{version}", others / "from-cxx", CONSUMER / "publishes.cpp", "ringmain", (COMPILER,))):
            run(*words, *self.flags("--cflags", package=package), source, "-o", program, *self.flags("--libs", package=package))
            run(program, LD_LIBRARY_PATH=str(self.library_folder))
            refused = subprocess.run([program], capture_output=True, text=True, check=False,
                                     env={**os.environ, "LD_LIBRARY_PATH": str(others)})
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(f"version `{node}' not found (required by ", refused.stderr)

    @unittest.skipUnless(shutil.which("clang++"), "needs clang++")
    def test_headers_and_a_program_compile_with_llvms_standard_library(self):
        words = ("clang++", "-stdlib=libc++", "-fsyntax-only", *WARNINGS, *self.flags("--cflags"))
        if subprocess.run(["clang++", "-stdlib=libc++", "-fsyntax-only", "-x", "c++", "-"], input="#include <string>\n", text=True,
                          capture_output=True, check=False).returncode:
            self.skipTest("there is no libc++ here (Debian package libc++-dev)")
        include = self.prefix / "include"
        headers = [header.relative_to(include) for room in ("bus", "events", "c")
                   for header in sorted((include / "ringmain" / room).rglob("*.h*"))]
        self.assertGreater(len(headers), 30)
        source = self.work / "all.cpp"
        source.write_text("".join(f"#include <{header}>\n" for header in headers))
        for path in (source, CONSUMER / "consumer.cpp", CONSUMER / "publishes.cpp"):
            run(*words, path)

    def test_a_cmake_project_has_ranks_that_are_threads(self):
        project = self.work / "on-the-loopback"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(trainer CXX)\n"
            "find_package(ringmain REQUIRED COMPONENTS loopback)\n"
            f"add_executable(trainer [==[{EXAMPLES / 'collective_trainer.cpp'}]==])\n"
            "target_link_libraries(trainer ringmain::loopback)\n")
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", project / "build")
        self.assertIn("12 completed, 4 refused, 3 aborted\n", run(project / "build" / "trainer"))
        run(COMPILER, *WARNINGS, *self.flags("--cflags"), "-fsyntax-only", EXAMPLES / "collective_trainer.cpp")

    def test_a_cmake_project_in_c_finds_it(self):
        project = self.work / "in-c"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(in_c C)\nfind_package(ringmain REQUIRED)\n"
            f"add_executable(in_c [==[{EXAMPLES / 'from_c.c'}]==])\ntarget_link_libraries(in_c ringmain::c)\n")
        run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", project / "build")
        self.assertIn("3 waited in the mailbox\n", run(project / "build" / "in_c"))

    def test_cuda_is_a_component_and_one_that_is_absent_is_named(self):
        project = self.work / "components"
        project.mkdir()
        lists = ("cmake_minimum_required(VERSION 3.25)\nproject(components CXX)\n"
                 "find_package(ringmain REQUIRED COMPONENTS {})\n"
                 f"add_executable(calls [==[{EXAMPLES / 'cuda_calls.cpp'}]==])\n"
                 "target_link_libraries(calls ringmain::cuda ${{CMAKE_DL_LIBS}})\n"
                 f"add_executable(trainer [==[{EXAMPLES / 'cuda_trainer.cpp'}]==])\n"
                 "target_link_libraries(trainer ringmain::cuda)\n")
        (project / "CMakeLists.txt").write_text(lists.format("cuda"))
        configure = ("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                     f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run(*configure)
        run("cmake", "--build", project / "build")
        (project / "CMakeLists.txt").write_text(lists.format("cuda rocm"))
        refused = subprocess.run(list(map(str, configure)), capture_output=True, text=True, timeout=100, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("has no ringmain::rocm", " ".join(refused.stderr.split()))

    def test_nccl_is_a_component_and_is_named_where_it_is_absent(self):
        project = self.work / "calls-nccl"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(calls_nccl CXX)\nfind_package(ringmain REQUIRED COMPONENTS nccl)\n"
            + "".join(f"add_executable({name} [==[{EXAMPLES / f'nccl_{name}.cpp'}]==])\n"
                      f"target_link_libraries({name} ringmain::nccl)\n" for name in ("trainer", "watch")))
        configure = ("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run(*configure, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", project / "build")
        # What stands in for NCCL is the build's; without it the program says that it has no NCCL.
        stand_in = Path(BUILD) / "tests" / "adapters" / "nccl" / "fake"
        self.assertTrue((stand_in / "libnccl.so.2").exists())
        said = run(project / "build" / "trainer", LD_LIBRARY_PATH=str(stand_in))
        self.assertIn("too large: invalid usage", said)
        self.assertIn("aborted, with 0 operations open", said)

        # A copy that was built without the adapters has no such target.
        bare = self.work / "bare"
        shutil.copytree(self.prefix, bare, symlinks=True, copy_function=os.link)
        for file in list(bare.rglob("ringmainTargets*.cmake")):
            text = file.read_text()
            file.unlink()
            file.write_text(text.replace("ringmain::nccl", "ringmain::of_another_name"))
        refused = subprocess.run(list(map(str, (*configure, "--fresh", f"-DCMAKE_PREFIX_PATH={bare}"))), capture_output=True, text=True,
                                 timeout=100, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("This copy of ringmain has no ringmain::nccl.", " ".join(refused.stderr.split()))

    def test_every_header_compiles_alone(self):
        include = self.prefix / "include"
        headers = sorted(header.relative_to(include) for room in ("bus", "adapters")
                         for header in (include / "ringmain" / room).rglob("*.hpp"))
        self.assertTrue(headers)
        source = self.work / "alone.cpp"
        for header in headers:
            with self.subTest(str(header)):
                source.write_text(f'#include "{header}"\n')
                run(COMPILER, *WARNINGS, "-fsyntax-only", *self.flags("--cflags"), source)

    def test_every_header_that_the_reference_shows_is_installed_and_no_other_is_left_out(self):
        sys.path.insert(0, str(HERE.parents[1] / "tools"))
        import public_headers
        include = self.prefix / "include" / "ringmain"
        installed = {path.relative_to(include) for path in include.rglob("*") if path.suffix in (".h", ".hpp")}
        shown = {public_headers.installed_path(path) for path in public_headers.public_headers(HERE.parents[1])}
        self.assertEqual({path for path in installed if path.parts[0] != "engine" and "core" not in path.parts}, shown)

    def test_a_plugin_that_uses_it_can_be_unloaded(self):
        plugin = self.work / "libplugin.so"
        run(COMPILER, *WARNINGS, "-shared", "-fPIC", *self.flags("--cflags"), CONSUMER / "consumer.cpp", "-o", plugin,
            *self.flags("--libs"))
        run(sys.executable, HERE.parents[1] / "tools" / "check_symbols.py", plugin)

    def test_a_plugin_from_outside_is_built_installed_listed_and_used(self):
        program = self.prefix / "bin" / "ringmain"
        if not program.exists() and os.environ["RINGMAIN_CLI"] == "OFF":
            self.skipTest("built without the program (RINGMAIN_BUILD_CLI)")
        build, counts = self.work / "plugin", self.work / "counts"
        run("cmake", "-S", PLUGIN, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}")
        run("cmake", "--build", build)
        prefix = self.work / "with a plugin"  # the prefix of the other tests stays as it was
        shutil.copytree(self.prefix, prefix, symlinks=True)
        run("cmake", "--install", build, "--prefix", prefix)
        program = prefix / "bin" / "ringmain"
        listed = json.loads(run(program, "providers", "--json", "--check"))
        tally = {one["name"]: one for one in listed["providers"]}["tally"]
        self.assertEqual((tally["kind"], tally["tags"], tally["state"]), ("sink", ["example"], "loaded"))
        self.assertTrue(tally["from"].startswith(str(prefix)), tally)
        self.assertEqual(listed["faults"], [])
        run(program, "replay", TRACE, "--speed", "max", "--quiet", "--select", "collective.issued", "--sink",
            f"tally:{counts}")
        self.assertEqual(counts.read_text(), "collective.issued 66\n")
        run(sys.executable, HERE.parents[1] / "tools" / "check_symbols.py", tally["from"])

    def test_a_run_within_a_run_of_another_installation_ends(self):
        if not (self.prefix / "bin" / "ringmain").exists() and os.environ["RINGMAIN_CLI"] == "OFF":
            self.skipTest("built without the program (RINGMAIN_BUILD_CLI)")
        with tempfile.TemporaryDirectory(prefix="ringmain-two-") as folder:
            outer, inner = (shutil.copytree(self.prefix, Path(folder) / name, symlinks=True) / "bin" / "ringmain"
                            for name in ("outer", "inner"))
            said = subprocess.run([outer, "run", "--summary", "--", inner, "run", "--summary", "--", "echo", "ran"],
                                  capture_output=True, text=True, timeout=100, check=True)
        self.assertEqual(said.stdout, "ran\n")
        self.assertIn("this run is within another one", said.stderr)

    def test_installing_again_changes_nothing(self):
        once, twice = self.once_and_twice
        self.assertEqual(sorted(once), sorted(twice))
        self.assertEqual(once, twice)

    def test_no_installed_text_names_the_build_or_the_source(self):
        for name, content in self.contents(self.prefix).items():
            if isinstance(content, bytes) and not content.startswith(b"\x7fELF"):
                for folder in (str(BUILD), str(HERE.parents[1])):
                    self.assertNotIn(folder.encode(), content, name)

    def test_both_packages_say_the_same_version(self):
        version = self.pkg_config("--modversion").strip()
        config = next(self.prefix.rglob("ringmainConfigVersion.cmake")).read_text()
        self.assertIn(f'set(PACKAGE_VERSION "{version}")', config)

    def test_a_later_minor_version_is_refused(self):
        project = self.work / "asks-for-more"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(asks NONE)\n"
                                                "find_package(ringmain 0.99 REQUIRED)\n")
        with self.assertRaisesRegex(AssertionError, "0.99"):
            run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
