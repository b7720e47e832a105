"""Does ringmain.comms work on torch.distributed, and are hooks of its groups found?"""

import os
import socket
import subprocess
import sys
import textwrap

import pytest
import ringmain
import torch
from ringmain import _native, comms

RANK = """
import sys
import torch, torch.distributed as dist
import ringmain
from ringmain import comms
bus = ringmain.Bus.process()
ends = []
bus.subscribe("collective.completed", lambda batch: ends.extend(event.op for event in batch))
comm = comms.new_comm("gloo", torch.device("cpu"), name="main")
rank, size = comm.get_rank(), comm.get_size()
seen, over = [], []
comm.register_pre_hook(lambda name, op_id, args: seen.append((name.value, op_id)))
comm.register_post_hook(lambda op_id, args: seen.append(("after", op_id)))
comm.register_completion_hook(lambda end: over.append((end.op_id, end.how)))
"""


def job(tmp_path, program, size=2):
    """The program's words, by rank."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "rank.py"
    script.write_text(RANK + textwrap.dedent(program))
    env = {**os.environ, "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
           "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [subprocess.Popen([sys.executable, script], env={**env, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) for rank in range(size)]
    ended = [rank.communicate(timeout=300) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * size, ended
    return [out for out, _ in ended]


def test_two_ranks_of_gloo_move_data_pair_their_hooks_and_hear_each_end(tmp_path):
    assert job(tmp_path, """
        tensor = torch.full((4,), float(rank + 1))
        comm.all_reduce(tensor, comms.ReduceOp.SUM, async_op=False)
        assert tensor.tolist() == [3.0] * 4
        gathered = [torch.zeros(2) for _ in range(size)]
        comm.all_gather(gathered, torch.full((2,), float(rank)), async_op=True).wait()
        assert [one[0].item() for one in gathered] == [0.0, 1.0]
        whole = torch.zeros(2)
        comm.all_gather_single(whole, torch.full((1,), float(rank)))
        assert whole.tolist() == [0.0, 1.0]
        sent = torch.full((1,), float(rank))
        comm.broadcast(sent, 1)
        comm.reduce(sent, 0, torch.distributed.ReduceOp.SUM)
        assert rank == 1 or sent.item() == 2.0
        mine = torch.zeros(1)
        comm.scatter(mine, [torch.tensor([5.0]), torch.tensor([6.0])] if rank == 0 else [], 0)
        assert mine.item() == 5.0 + rank
        comm.gather([torch.zeros(1), torch.zeros(1)] if rank == 0 else [], mine, 0)
        together = torch.zeros(2, 1)
        comm.gather_single(together if rank == 1 else None, mine, 1)
        assert rank == 0 or together.flatten().tolist() == [5.0, 6.0]
        got = torch.zeros(1)
        batch = comm.batch_op_create()
        batch.send(mine, 1 - rank)
        batch.recv(got, 1 - rank)
        batch.issue(async_op=True).wait()
        assert got.item() == 6.0 - rank
        if rank == 0:
            comm.send(mine, 1)
        else:
            comm.recv(got, 0)
        comm.barrier()
        part = comm.split([rank], f"part {rank}")
        part.all_reduce(mine)
        names = [name for name, _ in seen if name != "after"]
        ids = [id for name, id in seen if name != "after"]
        assert ids == [id for name, id in seen if name == "after"] and len(set(ids)) == len(ids)
        assert names == ["all_reduce", "all_gather", "all_gather_single", "broadcast", "reduce", "scatter", "gather", "gather_single",
                         "batch_op_issue", "send" if rank == 0 else "recv", "barrier", "split", "all_reduce"], names
        assert sorted(over) == [(id, "completed") for id in sorted(ids)], (over, ids)
        part.finalize()
        comm.finalize()
        dist.destroy_process_group()
        assert bus.flush(60) and len(ends) == len(ids), (ends, ids)
        print("done")
        """) == ["done\n"] * 2


def test_a_peer_that_is_gone_fails_the_operation_of_the_others(tmp_path):
    told = job(tmp_path, """
        import os
        comm.barrier()
        if rank == 1:
            os._exit(0)
        try:
            comm.all_reduce(torch.ones(4))
            print("went on")
        except RuntimeError:
            print(over[-1][1])
        sys.stdout.flush()
        os._exit(0)
        """)
    assert told == ["error\n", ""]


@pytest.fixture
def group(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield torch.distributed.distributed_c10d._get_default_group()
    torch.distributed.destroy_process_group()


def test_hooks_of_a_process_group_are_those_of_the_communicator_that_has_its_name(group):
    with ringmain.Bus("hooks of") as bus:
        with pytest.raises(LookupError, match=r"make it by new_comm\(\) or in C\+\+"):
            comms.hooks_of(group, bus=bus)
        native = _native.Communicator.make(bus._native, _native.CommunicatorOptions(group.group_name, 0, 1, source="torch"))
        seen, tensor = [], torch.ones(3)
        hooks = comms.hooks_of(group, bus=bus)
        handle = hooks.register_pre_hook(11, lambda args: seen.append((args.name.name, args.input_tensors, args.root)))
        with native.issue("all_reduce", [tensor]):
            pass
        assert [(name, root) for name, _, root in seen] == [("ALLREDUCE", -1)] and seen[0][1][0] is tensor
        assert handle.remove() == "done"


def test_a_backend_that_pytorch_has_not_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="this PyTorch has no backend 'smoke'; use 'loopback'"):
        comms.new_comm("smoke")


def test_what_torch_distributed_has_not_says_so(group):
    with ringmain.Bus("lacks") as bus:
        comm, after = comms.new_comm("gloo", name="lacks", bus=bus), []
        comm.register_post_hook(after.append)
        with pytest.raises(NotImplementedError, match="has no windows"):
            comm.new_window()
        assert [args.outcome for args in after] == ["threw"]
        comm.finalize()


def test_a_tensor_of_a_hook_is_the_callers_own(group):
    with ringmain.Bus("own") as bus:
        comm, seen = comms.new_comm("gloo", name="own", bus=bus), []
        shapes = []
        bus.subscribe("collective.shapes", lambda batch: shapes.extend(event.input for event in batch))
        comm.register_pre_hook(lambda args: seen.append(args.tensor))
        tensor = torch.ones(2, 3, dtype=torch.bfloat16)
        comm.all_reduce(tensor, async_op=True).wait()
        assert seen[0] is tensor
        comm.finalize()
        assert bus.flush(60) and shapes[0] == "bfloat16[2,3]"
