"""PyTorch's extension entry point: attached with nothing changed in the program, or not there at all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "bin" / "ringmain"
TRAIN = HERE / "train.py"
WHAT_IS_LIVE = """
import sys, torch
if "ringmain" in sys.modules:
    from ringmain.torch import _attach
    print(sorted(s.name for s in _attach._attached.report().surfaces if s.live) if _attach._attached else "imported")
else:
    print("absent")
"""


def python(*words, path=None, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGMAIN_")} | variables
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), environment.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, *map(str, words)], env=environment, capture_output=True, text=True)


def test_without_being_asked_it_does_not_even_import_the_package():
    for variables in ({}, {"RINGMAIN_ATTACH": "0"}):
        done = python("-c", WHAT_IS_LIVE, **variables)
        assert (done.returncode, done.stdout, done.stderr) == (0, "absent\n", ""), variables


def test_asked_for_it_attaches_while_pytorch_is_being_imported():
    done = python("-c", WHAT_IS_LIVE, RINGMAIN_ATTACH="1")
    assert done.returncode == 0, done.stderr
    assert {"guard verdicts", "structured trace", "torch.monitor"} <= set(json.loads(done.stdout.replace("'", '"')))


def test_compiles_of_an_unchanged_program_are_heard_by_whoever_listens_on_the_processs_bus():
    done = python("-c", "import ringmain; heard = []\n"
                  "ringmain.Bus.process().subscribe('compile.start', lambda b: heard.extend(e.text for e in b))\n"
                  f"import runpy; runpy.run_path({str(TRAIN)!r}, run_name='__main__')\n"
                  "assert ringmain.Bus.process().flush(60); print(heard)", RINGMAIN_ATTACH="1")
    assert done.returncode == 0, done.stderr
    assert "'0/0'" in done.stdout


def test_a_package_that_is_broken_does_not_stop_pytorch(tmp_path):
    (tmp_path / "ringmain").mkdir()
    (tmp_path / "ringmain" / "__init__.py").write_text("raise OSError('damaged installation')\n")
    done = python("-c", "import torch; print(torch.ones(1).item())", path=tmp_path, RINGMAIN_ATTACH="1")
    assert (done.returncode, done.stdout) == (0, "1.0\n")
    assert len(done.stderr.splitlines()) == 1
    assert "could not attach to PyTorch" in done.stderr and "damaged installation" in done.stderr


def test_where_ringmain_cuda_was_imported_before_its_source_steps_aside_and_no_more():
    program = ("try: import ringmain.cuda\n"
               "except ImportError: print('no library'); raise SystemExit\n"
               "from ringmain.torch import _attach, _profiler\n"
               "asked = []; _profiler.hook.connect = lambda by: asked.append(by.__name__) or ''\n"
               "import torch; print(asked, _attach._attached)")
    done = python("-c", program)
    if done.stdout == "no library\n":
        pytest.skip("this build has no source of CUDA's calls")
    assert (done.returncode, done.stdout) == (0, "['beside_cuda'] None\n"), done.stderr


def test_a_run_of_the_source_cuda_steps_aside_and_attaches_nothing_of_pytorch():
    program = ("from ringmain.torch import _attach, _profiler\n"
               "asked = []; _profiler.hook.connect = lambda by: asked.append(by.__name__) or ''\n"
               "import torch; print(asked, _attach._attached)")
    done = python("-c", program, RINGMAIN_ATTACH="cuda", RINGMAIN_RUN_SOURCES="cuda:lane=4096\nheartbeat")
    assert (done.returncode, done.stdout) == (0, "['beside_cuda'] None\n"), done.stderr


def test_a_second_import_or_attach_meets_the_same_attachment():
    done = python("-c", "import torch, ringmain, ringmain.torch\n"
                  "first = ringmain.torch.attach(); print(first is ringmain.torch.attach(ringmain.Bus.process()))",
                  RINGMAIN_ATTACH="1")
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_program_that_attaches_its_own_bus_runs_as_it_does_without_being_asked():
    done = python("-c", "import torch, ringmain, ringmain.torch\n"
                  "own = ringmain.Bus('own'); attachment = ringmain.torch.attach(own); print(attachment.bus is own)\n"
                  "try: ringmain.torch.attach(ringmain.Bus.process())\n"
                  "except ringmain.torch.AlreadyAttached: print('refused')", RINGMAIN_ATTACH="1")
    assert (done.returncode, done.stdout) == (0, "True\nrefused\n"), done.stderr
    assert "attaches PyTorch to a bus of its own" in done.stderr


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"there is no {PROGRAM}: the program was not built")
class TestRun:
    def run(self, *words):
        return subprocess.run([PROGRAM, "run", *map(str, words)], capture_output=True, text=True)

    def lines(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    @pytest.mark.parametrize("source", [[], ["--source", "torch"]], ids=["nothing_named", "named"])
    def test_an_unchanged_program_is_heard(self, tmp_path, source):
        done = self.run(*source, "--summary", "--sink", f"json_lines:{tmp_path}/e.jsonl", "--", sys.executable, TRAIN)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("trained: ")
        heard = self.lines(tmp_path / "e.jsonl")
        starts = [line for line in heard if line["channel"] == "compile.start"]
        ends = [line for line in heard if line["channel"] == "compile.end"]
        assert len(starts) == len(ends) > 0
        assert "lost" in done.stderr and ", 0 lost" in done.stderr

    def test_another_source_leaves_pytorch_alone(self, tmp_path):
        done = self.run("--source", "heartbeat", "--sink", f"json_lines:{tmp_path}/e.jsonl", "--", sys.executable,
                        "-c", WHAT_IS_LIVE)
        assert done.stdout == "absent\n", done.stderr

    def test_every_rank_of_torchrun_is_heard_in_its_own_file(self, tmp_path):
        done = self.run("--source", "torch", "--sink", f"json_lines:{tmp_path}/%r.jsonl", "--", sys.executable, "-m",
                        "torch.distributed.run", "--standalone", "--nproc-per-node", "2", TRAIN)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("trained: ") == 2
        for rank in range(2):
            heard = self.lines(tmp_path / f"{rank}.jsonl")
            assert any(line["channel"] == "compile.end" for line in heard), rank
