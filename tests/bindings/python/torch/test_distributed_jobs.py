"""Real jobs of gloo ranks under `ringmain run`, judged by what the program and PyTorch's recorder say (collectives_judge.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
PROGRAM = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "bin" / "ringmain"
JOB = HERE / "collectives_program.py"
HOOKS = ["--hooks"] * hasattr(torch.distributed.ProcessGroup, "register_pre_hook")

pytestmark = pytest.mark.skipif(not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
                                reason="this PyTorch has no gloo")


def environment(**variables):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("RINGMAIN_") and name not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    return kept | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"} | variables


def heard(folder):
    return f"json_lines:{folder}/heard.%r.jsonl"


def job(folder, world, *options):
    """A process for each rank; how each ended, and what it wrote."""
    ranks = [subprocess.Popen([PROGRAM, "run", "--sink", heard(folder), "--", sys.executable, JOB, folder, *options],
                              env=environment(RANK=str(rank), WORLD_SIZE=str(world)), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) for rank in range(world)]
    said = [rank.communicate()[0] for rank in ranks]
    return [rank.returncode for rank in ranks], said


def judged(folder, world):
    return subprocess.run([sys.executable, HERE / "collectives_judge.py", folder, str(world), *HOOKS], capture_output=True, text=True)


def judge(folder, world):
    said = judged(folder, world)
    assert said.returncode == 0, said.stdout + said.stderr


def test_torchrun_of_an_unchanged_program_is_heard_in_full(tmp_path):
    done = subprocess.run([PROGRAM, "run", "--sink", heard(tmp_path), "--", sys.executable, "-m", "torch.distributed.run",
                           "--standalone", "--nproc-per-node", "2", JOB, tmp_path], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    judge(tmp_path, 2)
    find_what_is_planted(tmp_path)


def find_what_is_planted(folder):
    """The judge can say no."""
    heard_by_0 = folder / "heard.0.jsonl"
    lines = heard_by_0.read_text().splitlines()
    issued = [line for line in lines if '"collective.issued"' in line]
    assert issued
    plants = {"one is missing": [line for line in lines if line != issued[5]], "one came twice": [*lines, issued[5]],
              "one is another's": [line.replace('"op":"barrier"', '"op":"gather"') for line in lines],
              "sequences are off": [line.replace('"event_sequence":4,', '"event_sequence":5,') for line in lines],
              "no end": [line for line in lines if '"collective.completed"' not in line],
              "no group ends": [line for line in lines if '"change":"ended"' not in line]}
    for plant, planted in plants.items():
        heard_by_0.write_text("\n".join(planted) + "\n")
        assert judged(folder, 2).returncode == 1, plant


@pytest.mark.parametrize("world", [2, 4])
def test_every_rank_says_the_same_while_subscribers_come_and_go_and_one_rank_is_late(tmp_path, world):
    codes, said = job(tmp_path, world, "--late", "--churn")
    assert codes == [0] * world, said
    judge(tmp_path, world)


@pytest.mark.parametrize("world", [2, 4])
def test_a_killed_rank_fails_the_operations_of_the_others(tmp_path, world):
    codes, said = job(tmp_path, world, "--killed")
    assert codes[-1] != 0 and codes[:-1] == [0] * (world - 1), said
    judge(tmp_path, world)
