#!/usr/bin/env python3
"""Does bench/scripts/bench_run.py run, stop, go on and judge as documented, with a program that answers what it is told to?"""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "scripts"))

import bench_rows  # noqa: E402
import bench_run  # noqa: E402
import bench_table  # noqa: E402

PROGRAM = """#!{python}
import json, random, sys
words = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
cases = json.load(open({cases!r}))
if "--benchmark_list_tests" in sys.argv:
    print("\\n".join(case + "/iterations:1/manual_time" for case in cases))
    sys.exit(0)
import re
runs = []
for case, figures in cases.items():
    if re.search(words["benchmark_filter"], case + "/iterations:1/manual_time"):
        for _ in range(int(words["benchmark_repetitions"])):
            run = {{"name": case + "/iterations:1/manual_time", "run_type": "iteration", "c2c_before_ns": 57.0,
                   "c2c_after_ns": 57.0}}
            if isinstance(figures, str):
                run.update(error_occurred=True, error_message=figures)
            else:
                run.update(figures)
            runs.append(run)
json.dump({{"context": {{"compiler": "made up", "peers_left_out": "quill "}}, "benchmarks": runs}},
          open(words["benchmark_out"], "w"))
"""


class WholeRun(unittest.TestCase):
    """bench/scripts/bench_run.py with a program that answers what it is told to."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringmain-bench-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, cases):
        (self.folder / "cases.json").write_text(json.dumps(cases))
        (self.folder / "bin").mkdir(exist_ok=True)
        program = self.folder / "bin" / "program"
        program.write_text(PROGRAM.format(python=sys.executable, cases=str(self.folder / "cases.json")))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    def bench(self, cases, *arguments):
        return subprocess.run(
            [sys.executable, str(ROOT / "bench" / "scripts" / "bench_run.py"), "--program", str(self.program(cases)), "--output",
             str(self.folder / "out"), "--json", str(self.folder / "result.json"), "--minutes", "0.001",
             "--busy-machine", "--no-python", "--no-plots", *arguments],
            capture_output=True, text=True, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def result(self):
        return json.loads((self.folder / "result.json").read_text())

    def test_a_run_without_the_peers_is_inconclusive_where_everything_is_absent(self):
        run = self.bench({"unheard/bus_wanted": {"value": 0.3}})
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        result = self.result()
        self.assertEqual([row["id"] for row in result["rows"]], [row.id for row in bench_rows.ROWS])
        for row in result["rows"]:
            self.assertLessEqual({"id", "question", "value", "unit", "target", "verdict"}, set(row))
        self.assertEqual(result["machine"]["compiler"], "made up")
        self.assertTrue(result["machine"]["cpu"])
        self.assertIn("peers that are not installed here: quill", run.stdout)
        self.assertTrue((self.folder / "out" / "unheard.0.json").is_file())

    def test_a_missed_row_ends_with_1(self):
        run = self.bench({"unheard/cycle": {"value": 0.25}, "unheard/load_and_branch": {"value": 0.3},
                          "unheard/bus_wanted": {"value": 3.0}, "unheard/bus_publish_with": {"value": 0.4}})
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        row = self.result()["rows"][0]
        self.assertEqual((row["id"], row["verdict"], row["part"]),
                         ("1", "missed", "wanted() above load and branch"))

    def test_a_promise_broken_while_measuring_ends_with_1_and_is_told(self):
        run = self.bench({"latency/bus_ring/per_second:100000": "events were lost"})
        self.assertEqual(run.returncode, 1)
        self.assertIn("fault: latency/bus_ring/per_second:100000: events were lost", run.stdout)

    def test_more_cases_than_a_run_may_have_are_told(self):
        run = self.bench({f"q{i}/bus": {"value": 1.0} for i in range(101)}, "--only", "q0/")
        self.assertEqual(run.returncode, 1)
        self.assertIn("101 cases; at most 100", run.stdout)

    def test_only_shows_figures_without_a_verdict(self):
        run = self.bench({"q/bus": {"value": 12.0}, "r/bus": {"value": 13.0}}, "--only", "^q/")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("q/bus", run.stdout)
        self.assertNotIn("r/bus", run.stdout)
        self.assertNotIn("missed", run.stdout)

    def test_a_run_in_pieces_goes_on_from_its_reports(self):
        cases = {"q/bus": {"value": 12.0}, "unheard/cycle": {"value": 0.25}}
        self.assertEqual(self.bench(cases, "--only", "^q/").returncode, 0)
        run = self.bench(cases, "--go-on", "--minutes", "1e-9")
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        self.assertEqual(list(self.result()["cases"]), ["q/bus"], "its time was over before it began")
        run = self.bench(cases, "--go-on", "--minutes", "1e6", "--seconds", "1e6")
        self.assertEqual(run.returncode, 3, run.stdout + run.stderr)
        figures = self.result()["cases"]
        self.assertEqual([figures[case]["N"]["value"]["n"] for case in cases], [5, bench_run.PLENTY])

    def test_figures_of_two_machines_or_builds_are_not_mixed(self):
        self.bench({"q/bus": {"value": 12.0}}, "--only", "^q/")
        path = self.folder / "out" / "q.0.json"
        report = json.loads(path.read_text())
        for what in ("cpu", "program"):
            path.write_text(json.dumps({**report, "context": {**report["context"], what: "another"}}))
            run = self.bench({"q/bus": {"value": 12.0}}, "--go-on")
            self.assertEqual(run.returncode, 1)
            self.assertIn("q.0.json is of another machine or of another build", run.stderr)
            self.assertNotIn("Traceback", run.stderr)

    def built_by(self, compiler):
        """Makes the program's folder one of a build, whose compiler is this script."""
        path = self.folder / "compiler"
        path.write_text(f"#!/bin/sh\n{compiler}\n")
        path.chmod(0o755)
        (self.folder / "CMakeCache.txt").write_text(
            f"# made up\nCMAKE_BUILD_TYPE:STRING=Release\nCMAKE_CXX_COMPILER:FILEPATH={path}\nCMAKE_CXX_FLAGS:STRING=-pipe\n"
            "CMAKE_CXX_FLAGS_RELEASE:STRING=-O2 -DSAID='a b'\nCMAKE_CXX_FLAGS_DEBUG:STRING=-g\n")

    def test_headers_are_compiled_as_the_programs_were(self):
        self.built_by(f'for word; do printf "%s|" "$word"; done >>{self.folder}/called; echo >>{self.folder}/called')
        run = self.bench({"unheard/bus_wanted": {"value": 0.3}})
        self.assertIn(run.returncode, (1, 3), run.stdout + run.stderr)  # what a shell costs may be anything
        self.assertNotIn("fault", run.stdout)
        figures = self.result()["cases"]
        self.assertEqual([figures[f"headers/{case}"]["single"]["value"]["n"] for case in ("functional", "publishes", "subscribes")], [7, 7, 7])
        called = (self.folder / "called").read_text().splitlines()
        sources = ROOT / "bench" / "headers"
        self.assertEqual(set(called), {f"-std=c++20|-pipe|-O2|-DSAID=a b|-iquote|{ROOT}|-c|-o|/dev/null|{sources}/{case}.cpp|"
                                       for case in ("functional", "publishes", "subscribes")})
        self.assertEqual(len(called), 24, "each once before it counts")

    def test_a_compiler_that_refuses_is_a_fault_and_says_why(self):
        self.built_by('echo "no such thing" >&2; exit 3')
        run = self.bench({"unheard/bus_wanted": {"value": 0.3}})
        self.assertEqual(run.returncode, 1)
        self.assertIn("fault: what including costs failed", run.stdout)
        self.assertIn("ended with 3: no such thing", run.stdout)

    def test_without_the_folder_of_a_build_the_headers_are_left_out_with_a_word(self):
        run = self.bench({"unheard/bus_wanted": {"value": 0.3}})
        self.assertIn("what including costs a compiler is left out", run.stderr)
        row = next(row for row in self.result()["rows"] if row["id"] == "14")
        self.assertEqual({part["verdict"] for part in row["parts"]}, {"skipped"})

    def test_a_program_that_was_not_built_gets_one_sentence(self):
        run = subprocess.run([sys.executable, str(ROOT / "bench" / "scripts" / "bench_run.py"), "--program", "/nowhere/bench",
                              "--output", str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr.count("\n")), (1, 1))
        self.assertIn("was not built; run ./dev bench", run.stderr)

    def test_the_page_takes_the_tables_between_its_marks(self):
        self.bench({"unheard/bus_wanted": {"value": 0.3}})
        page = self.folder / "page.md"
        page.write_text(f"before\n{bench_table.BEGIN}\nold\n{bench_table.END}\nafter\n")
        command = [sys.executable, str(ROOT / "bench" / "scripts" / "bench_table.py"), str(self.folder / "result.json"), str(page)]
        for _ in range(2):
            self.assertEqual(subprocess.run(command, check=False).returncode, 0)
        text = page.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))
        self.assertEqual(text.count("| **1** |"), 1)
        self.assertNotIn("old", text)
        page.write_text("no marks")
        self.assertEqual(subprocess.run(command, check=False, capture_output=True).returncode, 1)


class ManyCores(unittest.TestCase):
    """bench/scripts/bench_many_cores.sh --plan on machines that are made up."""

    def plan(self, cpus, given):
        """cpus: (its threads, its last-level cache, its node) for each."""
        with tempfile.TemporaryDirectory(prefix="ringmain-cpus-") as folder:
            for number, (threads, cache, node) in enumerate(cpus):
                cpu = Path(folder) / f"cpu{number}"
                (cpu / "topology").mkdir(parents=True)
                (cpu / "cache" / "index3").mkdir(parents=True)
                (cpu / f"node{node}").mkdir()
                (cpu / "topology" / "thread_siblings_list").write_text(threads)
                (cpu / "cache" / "index3" / "shared_cpu_list").write_text(cache)
            run = subprocess.run(["bash", str(ROOT / "bench" / "scripts" / "bench_many_cores.sh"), "--plan", f"{folder}/out"],
                                 capture_output=True, text=True, check=False,
                                 env={**os.environ, "RINGMAIN_BENCH_SYSTEM": folder, "RINGMAIN_BENCH_GIVEN": given})
            self.assertFalse((Path(folder) / "out").exists(), "a plan runs nothing and writes nothing")
        return run

    def test_two_cores_of_one_cache(self):
        run = self.plan([("0", "0-1", 0), ("1", "0-1", 0)], "0,1")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("near: cores 0,1, of one last-level cache", run.stderr)
        self.assertNotIn("far:", run.stderr)
        self.assertIn("many_cores_on_paper.py", run.stderr)

    def test_threads_of_a_core_are_passed_over_and_nodes_are_told_apart(self):
        run = self.plan([("0,1", "0-3", 0), ("0,1", "0-3", 0), ("2,3", "0-3", 0), ("2,3", "0-3", 0),
                         ("4", "4-5", 0), ("5", "4-5", 0), ("6", "6-7", 1), ("7", "6-7", 1)], "0-7")
        self.assertEqual(run.returncode, 0, run.stderr)
        for line in ("near: cores 0,2, of one", "far: cores 0,4, of two last-level", "node: cores 0,6, of two nodes",
                     "workers up to 4, publishers up to 8"):
            self.assertIn(line, run.stderr)

    def test_one_core_says_nothing(self):
        run = self.plan([("0", "0", 0)], "0")
        self.assertEqual(run.returncode, 1)
        self.assertIn("this machine has one core", run.stderr)


if __name__ == "__main__":
    unittest.main()
