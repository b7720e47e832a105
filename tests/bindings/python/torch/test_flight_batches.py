"""What is known of the members of PyTorch's batches, and of collectives that it issues as one, on real groups of gloo."""

import json
import pickle
import subprocess
import sys

import pytest
import torch
from flight_files import analyze, fr_trace

if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

# One rank of a ring of batches; of "skips" rank 1 leaves its send out, so rank 2 waits for it.
BATCHES = """
import json, os, sys
from pathlib import Path
import torch, torch.distributed as dist, ringmain, ringmain.torch
from ringmain import comms
folder, rank, skips = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "skips"
heard = []
bus = ringmain.Bus.process()
hears = bus.subscribe("collective.issued", lambda events: heard.extend((e.op, e.peer, e.p2p_sequence) for e in events))
ringmain.torch.attach(bus)
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=3)
recorder = comms.FlightRecorderHook(100, rank=rank)
recorder.register_with_comm(dist.group.WORLD)
give, get, all = torch.ones(4), torch.zeros(4), torch.zeros(12)
if not skips:
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as together:
        dist.all_reduce(give)
        dist.all_reduce(get)
    together.wait()
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as together:
        dist.all_gather_into_tensor(all, give)
        dist.all_gather_into_tensor(torch.zeros(12), get)
    together.wait()
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as together:
        dist.reduce_scatter_tensor(give, all)
        dist.reduce_scatter_tensor(get, torch.ones(12))
    together.wait()
ops = [dist.P2POp(dist.isend, give, (rank + 1) % 3), dist.P2POp(dist.irecv, get, (rank - 1) % 3)]
works = dist.batch_isend_irecv(ops[1:] if skips and rank == 1 else ops)
waits = skips and rank == 2
for work in works[:1] if waits else works:
    work.wait()
while len(json.loads(recorder.dump_json(include_completed=False)).get("entries", [])) > waits:
    os.sched_yield()
bus.flush()
(folder / f"heard{rank}").write_text(json.dumps(heard))
(folder / f"all{rank}.json").write_text(recorder.dump_json())
while skips and rank == 1 and not (folder / "rank_2").exists():  # an older dump would prove nothing
    os.sched_yield()
(folder / f"writing{rank}").write_bytes(recorder.dump_pickle())
(folder / f"writing{rank}").rename(folder / f"rank_{rank}")
while len(list(folder.glob("rank_*"))) < 3:
    os.sched_yield()
os._exit(0)
"""


@pytest.mark.parametrize("fault", ["healthy", "skips"])
def test_members_of_a_batch_of_pytorchs_are_named_and_what_is_coalesced_is_compared(tmp_path, fault):
    ranks = [subprocess.Popen([sys.executable, "-c", BATCHES, tmp_path, str(rank), fault], stderr=subprocess.PIPE, text=True)
             for rank in range(3)]
    assert [(rank.communicate()[1][-2000:], rank.returncode)[1] for rank in ranks] == [0, 0, 0]
    transfers = [["send", 1, 1], ["recv", 2, 2]]
    coalesced = ["all_reduce_coalesced", "all_gather_coalesced", "reduce_scatter_coalesced"] if fault == "healthy" else []
    assert json.loads((tmp_path / "heard0").read_text()) == [[name, -1, 0] for name in coalesced] + transfers
    entries = json.loads((tmp_path / "all0.json").read_text())["entries"]
    assert [e["profiling_name"] for e in entries] == [f"gloo:{name}" for name in [*coalesced, "send 0->1", "recv 0<-2"]]
    assert [(e["p2p_seq_id"], e["is_p2p"]) for e in entries[-2:]] == [(1, True), (2, True)]
    verdict, status = analyze(tmp_path)
    if fault == "skips":
        assert ([(f["kind"], f["culprits"]) for f in verdict["findings"]], status) == ([("transfer", [1])], 1)
        return
    assert (verdict["findings"], verdict["operations"], status) == ([], 3, 0)
    names = ["allreduce_coalesced", "all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"]
    loaded = pickle.loads((tmp_path / "rank_0").read_bytes())["entries"]
    assert [e["profiling_name"] for e in loaded[:3]] == [f"gloo:{name}" for name in names]
    for rank in range(3):  # of single sends in a group of three it says that the third rank lacks them
        kept = pickle.loads((tmp_path / f"rank_{rank}").read_bytes())
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps({**kept, "entries": kept["entries"][:3]}, protocol=2))
    said = fr_trace(tmp_path)
    assert "rror type" not in said and "Not all ranks" not in said and "mismatch" not in said.lower(), said
