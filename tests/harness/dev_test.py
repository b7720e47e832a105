#!/usr/bin/env python3
"""Does ./dev say what it does, install what is missing, and count what it ran?

A copy of ./dev runs with a search path of its own: the plain commands of the system, and stand-ins for the package
manager, the compiler and the build, which write down how they were called.
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAIN = ("bash", "sh", "env", "cat", "cp", "dirname", "basename", "mkdir", "mktemp", "tail", "rm", "uname", "nproc", "realpath",
         "chmod", "touch", "python3")
COMMANDS = ("cmake", "ninja", "pkg-config", "abidiff", "lintian", "dpkg-shlibdeps", "gdb", "mpirun.openmpi", "mpicc.openmpi", "mpirun.mpich", "mpicc.mpich", "gfortran", "spin",
            "valgrind", "ccache", "clang-format-14", "llvm-symbolizer")
VERBS = ("run", "build", "test", "bench", "soak", "fuzz", "mutate", "abi", "install", "wheel", "clean")

# A compiler that finds the headers whose names stand in a file.
COMPILER = """#!/bin/bash
source=$(cat)
[[ $source =~ \\<(.*)\\> ]] || exit 0
while read -r header; do [ "$header" != "${BASH_REMATCH[1]}" ] || exit 0; done <"$STATE/headers"
exit 1
"""
# A package manager whose packages bring what their names promise.
APT = """#!/bin/bash
echo "apt-get $*" >>"$STATE/calls"
[ "$1" = install ] || exit 0
[ ! -e "$STATE/archive-broken" ] || { echo "E: no such archive" >&2; exit 100; }
for package in "$@"; do
  case $package in
    build-essential) cp "$STATE/c++" "$STATE/bin/c++" ;;
    cmake | ninja-build | pkg-config | spin | gdb | lintian) echo '#!/bin/sh' >"$STATE/bin/${package%-build}" ;;
    libconcurrentqueue-dev) echo concurrentqueue/concurrentqueue.h >>"$STATE/headers" ;;
    libcli11-dev) echo CLI/CLI.hpp >>"$STATE/headers" ;;
    libsimdjson-dev) echo simdjson.h >>"$STATE/headers" ;;
    zlib1g-dev) echo zlib.h >>"$STATE/headers" ;;
    abigail-tools) echo '#!/bin/sh' >"$STATE/bin/abidiff" ;;
    openmpi-bin | mpich) echo '#!/bin/sh' >"$STATE/bin/mpirun.${package%-bin}" ;;
    libopenmpi-dev | libmpich-dev) package=${package#lib}; echo '#!/bin/sh' >"$STATE/bin/mpicc.${package%-dev}" ;;
    libgtest-dev) echo gtest/gtest.h >>"$STATE/headers" ;;
  esac
done
chmod +x "$STATE"/bin/*
"""
# A Python whose environments hold nothing but the wish to install.
PYTHON = """#!/bin/bash
[ "$1 $2" = "-m venv" ] || exec "$STATE/python" "$@"
echo "venv $3" >>"$STATE/environments"
mkdir -p "$3/bin"
cp "$STATE/pip" "$3/bin/python"
"""
PIP = """#!/bin/bash
[ "$1 $2" = "-m pip" ] || exit 0
echo "$*" >>"$STATE/environments"
[ ! -e "$STATE/pip-fails" ] || { echo "ERROR: No matching distribution found for torch==0.0.0" >&2; exit 1; }
"""
CTEST = """#!/bin/bash
echo "ctest $*" >>"$STATE/calls"
while [ "$1" != --output-junit ]; do shift; done
[ ! -e "$STATE/junit.xml" ] || cp "$STATE/junit.xml" "$2"
[ ! -e "$STATE/ctest-fails" ]
"""
JUNIT = """<testsuite tests="3">
<testcase name="A.Runs" status="run"><system-out>fine</system-out></testcase>
<testcase name="A.Skips" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
<system-out>[ RUN      ] A.Skips
a_test.cpp:3: Skipped
no recordings; set RINGMAIN_SHARED_DATA
</system-out></testcase>
{more}</testsuite>
"""
FAILED = '<testcase name="A.Fails" status="fail"><failure message=""/></testcase>'
GONE = '<testcase name="A.Gone" status="notrun"><skipped message="Unable to find executable"/></testcase>'


class DevTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-dev-")
        self.addCleanup(folder.cleanup)
        self.state = Path(folder.name)
        self.tree = self.state / "tree"
        (self.state / "bin").mkdir()
        (self.tree / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "dev", self.tree / "dev")
        for name in ("packages.bash", "environment.bash", "phases.bash", "python_packages.txt", "test_count.py"):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools" / name)
        for name in PLAIN:
            (self.state / "bin" / name).symlink_to(shutil.which(name))
        (self.state / "headers").write_text("")
        self.stand_in("ldconfig", "#!/bin/sh\necho libjemalloc.so.2 libtcmalloc_minimal.so.4\n")
        (self.state / "calls").write_text("")
        (self.state / "lists").mkdir()
        self.stand_in("id", "#!/bin/sh\necho 0\n")
        self.program(self.state / "c++", COMPILER)

    def program(self, path, text):
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def stand_in(self, name, text="#!/bin/sh\nexit 0\n"):
        self.program(self.state / "bin" / name, text)

    def everything_is_here(self):
        for name in COMMANDS + ("clang++",):
            self.stand_in(name)
        self.stand_in("c++", COMPILER)
        self.stand_in("ctest", CTEST)
        (self.state / "python").symlink_to(sys.executable)
        self.program(self.state / "pip", PIP)
        (self.state / "bin" / "python3").unlink()
        self.stand_in("python3", PYTHON)
        (self.state / "headers").write_text("\n".join(
            ("concurrentqueue/concurrentqueue.h", "CLI/CLI.hpp", "simdjson.h", "zlib.h", "gtest/gtest.h", "relacy/relacy.hpp", "")))

    def dev(self, *arguments):
        environment = {"PATH": str(self.state / "bin"), "STATE": str(self.state), "HOME": str(self.state),
                       "RINGMAIN_APT_LISTS": str(self.state / "lists")}
        return subprocess.run([str(self.tree / "dev"), *arguments], capture_output=True, text=True, check=False,
                              env=environment, cwd=self.state)

    def calls(self):
        return (self.state / "calls").read_text().splitlines()


class Usage(DevTest):
    def test_help_names_every_verb(self):
        for arguments in ((), ("help",), ("--help",)):
            run = self.dev(*arguments)
            self.assertEqual(run.returncode, 0, run.stderr)
            for verb in VERBS:
                self.assertIn(f"  {verb}", run.stdout)

    def test_every_verb_says_what_it_does(self):
        for verb in VERBS:
            run = self.dev(verb, "--help")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertTrue(run.stdout.startswith(f"./dev {verb}"), run.stdout)

    def test_a_wrong_word_gets_one_sentence_and_status_2(self):
        for arguments in (("walk",), ("build", "fast"), ("build", "dev", "asan"), ("test", "--slow"), ("soak", "--minutes", "0"),
                          ("test", "--torch"), ("test", "--torch", "newest"), ("test", "--torch=2.15"), ("test", "--torch", "2.15.0", "--quick"),
                          ("soak", "--minutes"), ("soak", "--resume"), ("soak", "--flight", "--json"), ("soak", "--json", "--flight"), ("fuzz", "--seed"), ("fuzz", "fast"), ("fuzz", "--preset", "slow"), ("install", "--prefix", ""), ("install", "here"), ("install", "--deb", "here"), ("install", "--deb", "--python", "here"), ("bench", "-x"), ("bench", "--json"),
                          ("wheel", "now"), ("wheel", "--python"), ("clean", "all")):
            run = self.dev(*arguments)
            self.assertEqual((run.returncode, run.stdout), (2, ""), arguments)
            self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        self.assertEqual(self.calls(), [])


class Packages(DevTest):
    def test_what_is_missing_is_named_before_it_is_installed(self):
        self.stand_in("apt-get", APT)
        self.stand_in("ctest", CTEST)
        run = self.dev("build", "dev")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        names = "build-essential cmake ninja-build pkg-config libconcurrentqueue-dev libcli11-dev libsimdjson-dev zlib1g-dev libgtest-dev abigail-tools lintian gdb openmpi-bin libopenmpi-dev mpich libmpich-dev"
        self.assertEqual(run.stdout.splitlines()[0], f"dev: installing what is missing here: {names}")
        update, install = self.calls()
        self.assertEqual(update, "apt-get update")
        self.assertTrue(install.startswith("apt-get install -y ") and install.endswith(names), install)

    def test_nothing_is_installed_where_nothing_is_missing(self):
        self.everything_is_here()
        self.stand_in("apt-get", APT)
        self.assertEqual(self.dev("build").returncode, 0)
        self.assertEqual(self.calls(), [])

    def test_the_peers_libraries_are_installed_only_when_asked_for(self):
        self.everything_is_here()
        self.stand_in("apt-get", APT)
        with (self.state / "headers").open("a") as headers:
            headers.write("benchmark/benchmark.h\n")
        (self.state / "bin" / "python3").unlink()
        self.stand_in("python3")
        self.assertEqual(self.dev("bench").returncode, 0)
        self.assertEqual(self.calls(), [])
        run = self.dev("bench", "--peers")
        self.assertEqual(run.returncode, 1)  # the stand-in of apt-get knows none of them
        self.assertIn("libboost-dev", self.calls()[-1])
        self.assertIn("liblttng-ust-dev", self.calls()[-1])

    def test_lists_that_are_there_are_not_fetched_again(self):
        self.everything_is_here()
        self.stand_in("apt-get", APT)
        (self.state / "lists" / "archive_main_Packages").touch()
        (self.state / "bin" / "ninja").unlink()
        self.assertEqual(self.dev("build").returncode, 0)
        self.assertEqual(len(self.calls()), 1)

    def test_a_system_without_apt_is_told_what_is_needed(self):
        self.everything_is_here()
        (self.state / "bin" / "ninja").unlink()
        run = self.dev("build")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no apt-get", run.stderr)
        self.assertIn("ninja-build", run.stderr)

    def test_a_user_with_sudo_installs_through_it(self):
        self.everything_is_here()
        self.stand_in("apt-get", APT)
        self.stand_in("id", "#!/bin/sh\necho 1000\n")
        self.stand_in("sudo", '#!/bin/bash\necho sudo >>"$STATE/calls"\nexec "$@"\n')
        (self.state / "lists" / "archive_main_Packages").touch()
        (self.state / "bin" / "ninja").unlink()
        self.assertEqual(self.dev("build").returncode, 0)
        self.assertEqual(self.calls()[0], "sudo")

    def test_a_user_without_sudo_is_given_the_command(self):
        self.everything_is_here()
        self.stand_in("apt-get", APT)
        self.stand_in("id", "#!/bin/sh\necho 1000\n")
        (self.state / "bin" / "ninja").unlink()
        run = self.dev("build")
        self.assertEqual(run.returncode, 1)
        self.assertIn("as root run: apt-get install -y", run.stderr)
        self.assertEqual(self.calls(), [])

    def test_a_failing_archive_is_tried_again_and_then_told(self):
        self.everything_is_here()
        self.stand_in("apt-get", APT)
        (self.state / "archive-broken").touch()
        (self.state / "bin" / "ninja").unlink()
        run = self.dev("build")
        self.assertEqual(run.returncode, 1)
        self.assertIn("the packages could not be installed", run.stderr)
        self.assertEqual(sum("install" in call for call in self.calls()), 2)


class Count(DevTest):
    def setUp(self):
        super().setUp()
        self.everything_is_here()

    def run_tests(self, *arguments, more=""):
        (self.state / "junit.xml").write_text(JUNIT.format(more=more))
        return self.dev("test", *arguments)

    def last_line(self, run):
        return run.stdout.splitlines()[-1]

    def test_three_builds_are_summed_and_a_skip_says_why(self):
        run = self.run_tests()
        self.assertEqual((run.returncode, self.last_line(run)), (0, "3 passed, 0 failed, 3 skipped"), run.stdout)
        self.assertIn("tsan: A.Skips: no recordings; set RINGMAIN_SHARED_DATA", run.stdout)
        labels = [call.split(" -L ")[1] if " -L " in call else "all" for call in self.calls()]
        self.assertEqual(labels, ["all", "^(unit|stress)$", "^(unit|stress)$"])

    def test_quick_runs_the_unit_tests_of_the_release_alone(self):
        run = self.run_tests("--quick")
        self.assertEqual((run.returncode, self.last_line(run)), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("-L ^unit$", self.calls()[0])

    def test_a_failed_test_fails_the_run(self):
        run = self.run_tests("--quick", more=FAILED)
        self.assertEqual((run.returncode, self.last_line(run)), (1, "1 passed, 1 failed, 1 skipped"))

    def test_a_missing_program_is_a_failure_although_ctest_calls_it_skipped(self):
        run = self.run_tests("--quick", more=GONE)
        self.assertEqual((run.returncode, self.last_line(run)), (1, "1 passed, 1 failed, 1 skipped"))

    def test_a_build_that_fails_is_counted_and_the_next_one_still_runs(self):
        self.stand_in("cmake", '#!/bin/bash\n[[ "$*" != *--build*build/asan* ]]\n')
        run = self.run_tests()
        self.assertEqual((run.returncode, self.last_line(run)), (1, "2 passed, 1 failed, 2 skipped"))
        self.assertIn("asan: did not build", run.stdout)

    def test_a_run_without_tests_is_a_failure(self):
        (self.state / "junit.xml").write_text("<testsuite/>")
        run = self.dev("test", "--quick")
        self.assertEqual((run.returncode, self.last_line(run)), (1, "0 passed, 1 failed, 0 skipped"))

    def test_an_error_outside_of_the_tests_is_a_failure(self):
        (self.state / "ctest-fails").touch()
        run = self.run_tests("--quick")
        self.assertEqual((run.returncode, self.last_line(run)), (1, "1 passed, 1 failed, 1 skipped"))

    def test_old_results_do_not_stand_in_for_a_run(self):
        self.run_tests("--quick")
        (self.state / "junit.xml").unlink()
        run = self.dev("test", "--quick")
        self.assertEqual((run.returncode, self.last_line(run)), (1, "0 passed, 1 failed, 0 skipped"))

    def test_ci_ends_with_the_count(self):
        (self.tree / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "run", self.tree / ".ci" / "run")
        (self.state / "junit.xml").write_text(JUNIT.format(more=FAILED))
        run = subprocess.run([str(self.tree / ".ci" / "run")], capture_output=True, text=True, check=False,
                             env={**os.environ, "PATH": str(self.state / "bin"), "STATE": str(self.state)})
        self.assertEqual((run.returncode, self.last_line(run)), (1, "3 passed, 3 failed, 3 skipped"))


INNER = """<testsuites><testsuite><testcase name="test_a"/><testcase name="test_b"/>
<testcase name="test_c"><skipped message="collection skipped">('/some/conftest.py', 35, "Skipped: no 'torch' here")</skipped></testcase>{more}</testsuite></testsuites>
"""
OUTER = """<testcase name="python.some" status="{status}"><system-out>results: {path}
</system-out></testcase>"""


class Python(DevTest):
    def setUp(self):
        super().setUp()
        self.everything_is_here()
        (self.state / "junit.xml").write_text(JUNIT.format(more=""))

    def environments(self):
        return path.read_text().splitlines() if (path := self.state / "environments").exists() else []

    def test_an_environment_is_made_once_for_a_list_of_packages(self):
        for _ in range(2):
            self.assertEqual(self.dev("test").returncode, 0)
        made, filled = self.environments()
        self.assertEqual(made, f"venv {self.tree}/build/venv")
        self.assertIn("torch==2.13.0", filled)
        with (self.tree / "tools" / "python_packages.txt").open("a") as packages:
            packages.write("another\n")
        self.assertEqual(self.dev("test").returncode, 0)
        self.assertEqual(len(self.environments()), 4)

    def test_torch_is_left_out_when_asked(self):
        self.assertEqual(self.dev("test", "--no-torch").returncode, 0)
        self.assertRegex(" ".join(self.environments()), r"^venv \S+/build/venv-without-torch (?!.*torch).*nanobind")

    def test_another_torch_has_an_environment_of_its_own_and_runs_what_needs_it(self):
        for words in (("--torch", "2.15.0"), ("--torch=2.15.0",)):
            run = self.dev("test", *words)
            self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"), run.stderr)
        self.assertRegex(" ".join(self.environments()), r"^venv \S+/build/venv-torch-2.15.0 .*nanobind.* torch==2.15.0$")  # once
        self.assertTrue(all("-L ^torch$" in call for call in self.calls() if call.startswith("ctest")))

    def test_a_torch_that_pip_does_not_find_gets_one_sentence_and_leaves_nothing(self):
        (self.state / "pip-fails").touch()
        self.assertRegex(self.dev("test", "--torch", "9.9.9").stderr, r"\Adev: pip finds no torch 9\.9\.9 .*\n\Z")
        self.assertFalse((self.tree / "build" / "venv-torch-9.9.9").exists())

    def test_quick_makes_none(self):
        self.assertEqual(self.dev("test", "--quick").returncode, 0)
        self.assertEqual(self.environments(), [])

    def test_packages_that_cannot_be_installed_are_one_failure_and_the_rest_runs(self):
        (self.state / "pip-fails").touch()
        run = self.dev("test")
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]), (1, "3 passed, 1 failed, 3 skipped"))
        self.assertIn("No matching distribution found for torch==0.0.0\ndev: build/venv could not be filled; see build/venv.log", run.stderr)
        self.assertEqual(run.stderr.count("dev: "), 1)

    def test_a_python_that_will_not_do_gets_one_sentence(self):
        environment = {"PATH": str(self.state / "bin"), "STATE": str(self.state), "HOME": str(self.state)}
        script = f'root={self.tree}; die() {{ echo "dev: $*" >&2; exit 1; }}; source "$root/tools/environment.bash"; ' \
                 'base_python() { return 1; }; environment'
        run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(run.stderr, "dev: the Python package needs Python 3.11 or newer with its headers, venv and pip "
                                     "(Debian: python3-venv, python3-dev).\n")

    def count(self, inner, status="run"):
        path = self.state / "inner.xml"
        path.unlink(missing_ok=True)
        if inner is not None:
            path.write_text(inner)
        (self.state / "junit.xml").write_text(JUNIT.format(more=OUTER.format(status=status, path=path)))
        return self.dev("test", "--quick").stdout

    def test_each_test_of_pytest_is_counted(self):
        told = self.count(INNER.format(more=""))
        self.assertIn("3 passed, 0 failed, 2 skipped", told)
        self.assertIn("release: python.some: test_c: no 'torch' here\n", told)

    def test_a_failure_in_pytest_is_one(self):
        told = self.count(INNER.format(more='<testcase name="test_d"><failure/></testcase>'), "fail")
        self.assertIn("3 passed, 1 failed, 2 skipped", told)
        self.assertIn("release: python.some: test_d\n", told)

    def test_a_crash_is_one_failure(self):
        self.assertIn("1 passed, 1 failed, 1 skipped", self.count(None, "fail"))
        self.assertIn("3 passed, 1 failed, 2 skipped", self.count(INNER.format(more=""), "fail"))
        self.assertIn("1 passed, 1 failed, 1 skipped", self.count("<testsuites/>", "fail"))


class Install(DevTest):
    def test_a_prefix_that_cannot_be_written_is_told_before_building(self):
        self.everything_is_here()
        run = self.dev("install", "--prefix", "/proc/ringmain")
        self.assertEqual(run.returncode, 1)
        self.assertIn("/proc/ringmain cannot be written; give --prefix DIR", run.stderr)
        self.assertFalse((self.tree / "build").exists())

    def test_clean_removes_the_builds_alone(self):
        (self.tree / "build" / "release").mkdir(parents=True)
        self.assertEqual(self.dev("clean").returncode, 0)
        self.assertEqual(sorted(path.name for path in self.tree.iterdir()), ["dev", "tools"])


if __name__ == "__main__":
    unittest.main()
