"""Sends, receives and batches of them in what recorders and `ringmain fr merge` write, as PyTorch's analyzer reads it."""

import json
import pickle
import threading

from flight_files import CULPRIT, analyze, fr_trace, merge, pickles, quiet, recorded, zeros
from ringmain import comms


def test_sends_and_receives_lie_in_groups_of_their_two_ranks():
    def program(comm, _):
        comm.all_reduce(zeros(2), comms.ReduceOp.SUM)
        for _ in range(2):
            comm.send(zeros(3), 1) if comm.get_rank() == 0 else comm.recv(zeros(3), 0)
        comm.all_reduce(zeros(2), comms.ReduceOp.SUM)

    recorders = recorded(2, program)
    for recorder, name in zip(recorders, ("send 0->1", "recv 1<-0"), strict=True):
        loaded = pickle.loads(recorder.dump_pickle())
        assert [(e["profiling_name"], e["process_group"][0], e["collective_seq_id"], e["p2p_seq_id"], e["is_p2p"]) for e in loaded["entries"][1:3]] == [
            (f"nccl:{name}", "main 0->1", 1, 2**32 + 1, True), (f"nccl:{name}", "main 0->1", 2, 2**32 + 2, True)]
        assert loaded["pg_config"]["main 0->1"] == {"name": "main 0->1", "desc": "loopback", "ranks": "[0,1]", "transfers_of": "main", "between": "0->1"}
        assert [e["process_group"][0] for e in json.loads(recorder.dump_json())["entries"]] == ["main"] * 4


def transfers(comm, lost=False):
    """Of four ranks: sends of some to some, both ways, and batches in a ring, in the world and in a part of it."""
    rank, size = comm.get_rank(), comm.get_size()
    part = comm.split([1, 3] if rank in (1, 3) else [0, 2], "odd" if rank in (1, 3) else "even")
    comm.all_gather_v([zeros(i + 1) for i in range(size)], zeros(rank + 1))  # which the analyzer would not take
    for to, source in ((3, 0), (1, 2), (2, 1), (3, 0)):
        if rank == source:
            comm.send(zeros(5), to)
        elif rank == to:
            comm.recv(zeros(5), source)
    for group in (comm, part):
        for _ in range(2):
            batch, at, n = group.batch_op_create(), group.get_rank(), group.get_size()
            for _ in range(2):
                batch.send(zeros(4), (at + 1) % n)
                batch.recv(zeros(4), (at - 1) % n)
            batch.issue(async_op=False)
        group.all_reduce(zeros(3), comms.ReduceOp.SUM)
    if rank == 1:  # and ranks that do nothing meanwhile
        comm.send(zeros(2), 0)
    if rank == 0 and not lost:
        comm.recv(zeros(2), 1)


def test_the_analyzer_finds_nothing_in_sends_receives_and_batches(tmp_path):
    recorders = recorded(4, lambda comm, _: transfers(comm))
    pickles(tmp_path, recorders)
    assert pickle.loads((tmp_path / "rank_1").read_bytes())["left_out"] == 2  # the split, and all_gather_v
    said = fr_trace(tmp_path)
    assert quiet(said), said
    verdict, status = analyze(tmp_path)
    assert (verdict["findings"], status) == ([], 0)
    assert {group["name"] for group in verdict["groups"]} == {"main", "odd", "even"}
    assert "The file of rank 1 leaves out 2 operations that PyTorch's analyzer cannot compare; dump_json() has them" in verdict["notes"]
    # The same from the recorder's JSON, and from the files once more.
    for rank, recorder in enumerate(recorders):
        (tmp_path / "json").mkdir(exist_ok=True)
        (tmp_path / "json" / f"rank_{rank}").write_text(json.dumps(json.loads(recorder.dump_json()) | {"rank": rank}))
    for source, counted in ((tmp_path / "json", "8 that fr_trace cannot compare"), (tmp_path, "0 that fr_trace cannot compare")):
        out = tmp_path / f"merged_{source.name}"
        said = merge(source, out)
        assert counted in said and "0 not in all rings" in said and "0 that not all dumps had come to" in said
        said = fr_trace(out)
        assert quiet(said), said
        assert analyze(out)[0]["findings"] == []


def test_the_analyzer_finds_a_receive_without_its_send(tmp_path):
    def program(comm, recorder):
        comm.all_reduce(zeros(4), comms.ReduceOp.SUM)
        if comm.get_rank() == 0:
            comm.recv(zeros(4), CULPRIT, async_op=True)
        meet.wait()
        made = recorder.dump_pickle()
        meet.wait()
        return made

    meet = threading.Barrier(4)
    pickles(tmp_path, recorded(4, program))
    verdict, status = analyze(tmp_path)
    assert (verdict["findings"][0]["kind"], verdict["culprits"], status) == ("transfer", [CULPRIT], 1)
    merge(tmp_path, tmp_path / "out")
    for folder in (tmp_path, tmp_path / "out"):
        said = fr_trace(folder)
        assert "Not all ranks joining collective" in said and f"missing ranks: {{{CULPRIT}}}" in said, said


def test_lists_of_tensors_of_several_sizes_are_in_json_only(tmp_path):
    def program(comm, _):
        comm.all_gather([zeros(2) for _ in range(2)], zeros(2))

    made = json.loads(recorded(2, program)[0].dump_json())
    made["entries"][0]["output_sizes"] = [[2], [3]]
    for rank in range(2):
        (tmp_path / f"rank_{rank}").write_text(json.dumps(made | {"rank": rank}))
    assert "0 operations: 0 not in all rings, 2 that fr_trace cannot compare" in merge(tmp_path, tmp_path / "out")
