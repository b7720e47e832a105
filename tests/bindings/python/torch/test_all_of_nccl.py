"""PyTorch's process group, the wrapper's header, the preload and NCCL's plugin in one process: one `issued` and one end each."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

BUILD = Path(os.environ.get("RINGMAIN_BUILD", "."))
PROGRAM = BUILD / "bin" / "ringmain"
LIBRARY = BUILD / "tests" / "adapters" / "nccl" / "libnccl_all_four.so"
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not torch.distributed.is_available() or not LIBRARY.exists(),
                                reason="this PyTorch has no process groups, or the library that is played on was not built")


def run(folder, *sources):
    lines = folder / "heard.jsonl"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RINGMAIN_", "NCCL_"))}
    words = [word for source in sources for word in ("--source", source)]
    done = subprocess.run([PROGRAM, "run", *words, "--sink", f"json_lines:{lines}", "--", sys.executable, HERE / "all_four_program.py",
                           LIBRARY], env=kept | {"PYTHONWARNINGS": "ignore"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), [json.loads(line) for line in lines.read_text().splitlines()], done.stderr


SOURCES = ("torch", "nccl:kernel=always", "nccl_calls")


@pytest.mark.parametrize("sources", [SOURCES, SOURCES[:2], SOURCES[::2], SOURCES[1:], *((one,) for one in SOURCES)])
def test_each_operation_is_issued_once_and_ends_once_whoever_hears_it(tmp_path, sources):
    called, events, said = run(tmp_path, *sources)
    assert said == ""
    torch_hears, plugin, calls = (source in sources for source in SOURCES)
    on = lambda channel: [event for event in events if event["channel"] == channel]
    issued = sorted(on("collective.issued"), key=lambda one: one["time_ns"])
    # NCCL tells its plugin of a broadcast's call alone: then nobody issues it but those above, nor sees its end.
    expected = [(op, above and torch_hears) for _, above, op in called
                if above and torch_hears or calls or plugin and op != "broadcast"]
    assert [(one["op"], one["source"] == "torch") for one in issued] == expected
    assert len({one["op_id"] for one in issued}) == len(expected)
    assert on("collective.failed") == []
    ends = {one["op_id"] for one in issued if plugin and one["op"] != "broadcast"}
    for channel in ("collective.started", "collective.completed", "nccl.evidence", "nccl.operation", "nccl.kernel_channel"):
        assert Counter(one["op_id"] for one in on(channel)) == dict.fromkeys(ends, 1), channel
