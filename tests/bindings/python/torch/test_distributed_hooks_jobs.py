"""Jobs of gloo ranks whose process groups have hooks that come, go and refuse, judged by the program's own log (hooks_judge.py)."""

import json
import subprocess
import sys

import pytest
import torch
from test_distributed_jobs import HERE, PROGRAM, environment, heard

pytestmark = pytest.mark.skipif(not (torch.distributed.is_available() and torch.distributed.is_gloo_available()),
                                reason="this PyTorch has no gloo")


def judged(folder, world):
    return subprocess.run([sys.executable, HERE / "hooks_judge.py", folder, str(world)], capture_output=True, text=True)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_hooks_refuse_and_are_told_what_the_program_did(tmp_path, world):
    ranks = [subprocess.Popen([PROGRAM, "run", "--sink", heard(tmp_path), "--", sys.executable, HERE / "hooks_program.py", tmp_path],
                              env=environment(RANK=str(rank), WORLD_SIZE=str(world)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) for rank in range(world)]
    said = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world, said
    verdict = judged(tmp_path, world)
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    find_what_is_planted(tmp_path, world)


def find_what_is_planted(folder, world):
    """The judge can say no."""
    heard_by_0, log = folder / "heard.0.jsonl", folder / "log.0.json"
    lines, logged = heard_by_0.read_text(), log.read_text()
    for plant in (lines.replace('"how":"vetoed"', '"how":"error"', 1), lines.replace("float32[5,64]", "float32[64,5]", 1),
                  lines.replace('"channel":"collective.completed"', '"channel":"nothing"', 1)):
        assert plant != lines
        heard_by_0.write_text(plant)
        assert judged(folder, world).returncode == 1
    heard_by_0.write_text(lines)
    kept = json.loads(logged)
    for key in ("calls", "refused", "before", "after"):
        log.write_text(json.dumps(kept | {key: kept[key][1:]}))
        assert judged(folder, world).returncode == 1, key
