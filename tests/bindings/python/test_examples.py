"""Do the examples run, and are they typed as users would want them?"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[3]))


def run(*command, code=0, **more):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=120, **more)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


def test_the_training_loop_runs():
    told = run(sys.executable, ROOT / "examples" / "python" / "training.py", "200")
    assert re.search(r"^200 steps, 25 losses heard, the last 0\.10, 175 refused$", told, re.M), told
    assert re.search(r"^(\d+) batches, and the GIL taken \1 times for them$", told, re.M), told


def test_the_hooks_of_four_ranks_run():
    told = run(sys.executable, ROOT / "examples" / "python" / "collective_hooks.py", "50")
    assert re.search(r"^4 ranks, 50 steps each: 200 all_reduce completed, the slowest \d+ us$", told, re.M), told
    assert re.search(r"^rank 2 was refused at step 25: a gradient is not a number$", told, re.M), told


def test_the_recorder_of_each_rank_leaves_a_dump(tmp_path):
    told = run(sys.executable, ROOT / "examples" / "python" / "flight_recorder.py", tmp_path)
    assert told.split() == [str(tmp_path / f"rank_{rank}") for rank in range(4)]
    program = Path(os.environ["RINGMAIN_BUILD"]) / "bin" / "ringmain"
    told = run(program, "fr", "analyze", "--grace", "0", tmp_path, code=1)
    assert re.search(r"^First cause: rank 2$", told, re.M), told


def test_a_watchdog_gives_up_the_group_in_which_a_rank_sleeps(tmp_path):
    told = run(sys.executable, ROOT / "examples" / "python" / "watchdog.py", tmp_path)
    first, *ranks = told.splitlines()
    assert first == "all_reduce of dp is overdue since it was issued"
    assert [line.partition(",")[0] for line in ranks] == [f"rank {rank}: {'slept' if rank == 2 else 'given up'}" for rank in range(4)], told
    dumps = {f"rank_{rank}" for rank in range(4)}
    stacks = {f"stacks-{rank}.txt" for rank in range(4)} if sys.version_info < (3, 13) else set()  # docs/door.md
    assert {file.name for file in tmp_path.iterdir()} == {"flight"} | dumps | stacks
    program = Path(os.environ["RINGMAIN_BUILD"]) / "bin" / "ringmain"
    assert "collective.overdue" in run(program, "post-mortem", tmp_path / "flight")


def test_hooks_on_pytorchs_groups_refuse_what_is_beyond_the_budget():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no gloo")
    told = run(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               ROOT / "examples" / "python" / "torchrun_hooks.py", "20", env={**os.environ, "OMP_NUM_THREADS": "1"})
    # 64 x 128 and 128 floats fit into 64 KiB, the next 128 x 128 do not, and the last 128 do.
    assert sorted(re.findall(r"rank \d: \d+ all_reduce issued, \d+ refused, \d+ without the guard", told)) == [
        f"rank {rank}: 64 all_reduce issued, 20 refused, 0 without the guard" for rank in range(2)], told


def test_the_examples_are_clean_under_strict(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    import ringmain

    package = Path(ringmain.__file__).resolve().parents[1]
    told = run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, *sorted((ROOT / "examples" / "python").glob("*.py")),
               env={**os.environ, "MYPYPATH": str(package)}, cwd=tmp_path)
    assert told.startswith("Success")


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_what_the_pages_show_runs_as_it_stands(page, tmp_path):
    shown = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    programs = [text for text in shown if not any(word in text for word in ("torch", "ringmain.cuda", "ringmain.nccl"))]  # cuda/, nccl/ run those
    assert programs
    for text in programs:
        run(sys.executable, "-c", text, env={**os.environ, "RINGMAIN_FLIGHT_DIR": str(tmp_path)})
