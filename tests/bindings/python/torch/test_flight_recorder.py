"""What comms.FlightRecorderHook writes, as PyTorch's analyzer and `ringmain fr` read it, and what real jobs of gloo leave."""

import json
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from flight_files import CULPRIT, analyze, fr_trace, judged, merge, pickles, quiet, recorded, zeros
from ringmain import comms

HERE = Path(__file__).parent

# What PyTorch's debug server does with JSON.
BUILD_DB = """
import argparse, json, sys
from torch.distributed.flight_recorder.components.builder import build_db
from torch.distributed.flight_recorder.components.config_manager import JobConfig
dumps = json.load(open(sys.argv[1]))
details = {f"rank{i}": {"rank": i, "version": d["version"], "pg_config": d["pg_config"], "pg_status": d["pg_status"], "entries": d["entries"]}
           for i, d in enumerate(dumps)}
db = build_db(details, JobConfig().parse_args(["unused"]), "2.10")
print(len(db.groups), len(db.memberships), len(db.collectives))
"""


def every_collective(comm):
    n, rank = comm.get_size(), comm.get_rank()
    comm.broadcast(zeros(3, 4), 0)
    comm.all_reduce(zeros(5, 6, dtype="int64"), comms.ReduceOp.SUM)
    comm.reduce(zeros(4), 0, comms.ReduceOp.SUM)
    comm.all_gather([zeros(2, 3) for _ in range(n)], zeros(2, 3))
    comm.all_gather_single(zeros(2 * n), zeros(2))
    comm.reduce_scatter(zeros(2), [zeros(2) for _ in range(n)])
    comm.reduce_scatter_single(zeros(2), zeros(2 * n))
    comm.all_to_all_single(zeros(n), zeros(n))
    comm.all_to_all_v_single(zeros(n), zeros(n), [1] * n, [1] * n)
    comm.all_to_all([zeros(2) for _ in range(n)], [zeros(2) for _ in range(n)])
    comm.scatter(zeros(2), [zeros(2) for _ in range(n)] if rank == 0 else [], 0)
    comm.gather([zeros(2) for _ in range(n)] if rank == 0 else [], zeros(2), 0)
    comm.gather_single(zeros(2 * n) if rank == 0 else None, zeros(2), 0)
    comm.barrier()


KNOWN = ["broadcast", "all_reduce", "reduce", "all_gather", "_all_gather_base", "reduce_scatter", "_reduce_scatter_base", "all_to_all",
         "all_to_all", "all_to_all", "scatter", "gather", "gather", "all_reduce_barrier"]


def test_the_analyzer_takes_every_name_that_it_knows_and_finds_nothing(tmp_path):
    recorders = recorded(4, lambda comm, _: every_collective(comm))
    pickles(tmp_path, recorders)
    loaded = pickle.loads((tmp_path / "rank_3").read_bytes())
    assert [entry["profiling_name"] for entry in loaded["entries"]] == [f"nccl:{name}" for name in KNOWN]
    assert all(entry["state"] == "completed" and entry["duration_ms"] > 0 for entry in loaded["entries"])
    said = fr_trace(tmp_path)
    assert quiet(said), said
    assert analyze(tmp_path)[0]["findings"] == []


def test_the_analyzer_passes_over_the_stacks_beside_the_dumps(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "rank_"))
    for rank, recorder in enumerate(recorded(4, lambda comm, _: every_collective(comm))):
        recorder.dump_file(rank)
    if sys.version_info < (3, 13):  # later ones do not lend their stacks: docs/door.md
        assert "most recent call first" in (tmp_path / "stacks-3.txt").read_text()
    assert "mismatch" not in fr_trace(tmp_path).lower()


def test_what_it_has_no_name_for_is_in_json_only():
    def program(comm, recorder):
        comm.split([comm.get_rank()], f"own{comm.get_rank()}")
        comm.all_gather_v([zeros(2) for _ in range(2)], zeros(2))
        comm.all_reduce(zeros(2), comms.ReduceOp.SUM)

    recorder = recorded(2, program)[0]
    names = [entry["profiling_name"] for entry in json.loads(recorder.dump_json())["entries"]]
    assert names == ["nccl:split", "nccl:all_gather_v", "nccl:all_reduce"]
    assert [e["profiling_name"] for e in pickle.loads(recorder.dump_pickle())["entries"]] == ["nccl:all_reduce"]


def planted(fault):
    """One operation that goes well, and one in which rank 2 differs."""
    def program(comm, recorder):
        culprit = comm.get_rank() == CULPRIT
        comm.all_reduce(zeros(4), comms.ReduceOp.SUM)
        if fault == "rank":
            if not culprit:
                comm.all_reduce(zeros(4), comms.ReduceOp.SUM, async_op=True)
            return recorder.dump_pickle()  # before the others leave, which ends what is open
        if fault == "state":
            work = comm.all_reduce(zeros(4), comms.ReduceOp.SUM, async_op=True) if culprit else None
            made = recorder.dump_pickle() if culprit else None
            dumped.wait()  # the others come when rank 2 has its dump
            if culprit:
                work.wait()
            else:
                comm.all_reduce(zeros(4), comms.ReduceOp.SUM)
            return made
        try:
            if fault == "operation" and culprit:
                comm.broadcast(zeros(4), 0)
            else:
                comm.all_reduce(zeros(*([7] if fault == "size" and culprit else [4]),
                                      dtype="int32" if fault == "dtype" and culprit else "float32"), comms.ReduceOp.SUM)
        except (RuntimeError, TypeError, ValueError):  # the loopback says it, too
            pass
        return recorder.dump_pickle()

    dumped = threading.Barrier(4)
    return recorded(4, program)


@pytest.mark.parametrize(("fault", "theirs", "ours"), [
    ("rank", "Not all ranks joining collective", "not_joined"), ("size", "SIZE_OR_SYNTAX_MISMATCH", "size"),
    ("dtype", "COLLECTIVE_DTYPE_MISMATCH", "type"), ("operation", "COLLECTIVE_TYPE_MISMATCH", "operation"),
    ("state", "COLLECTIVE_STATE_MISMATCH", "state")])
def test_the_analyzer_finds_what_was_planted(tmp_path, fault, theirs, ours):
    pickles(tmp_path, planted(fault))
    assert theirs in fr_trace(tmp_path)
    verdict, status = analyze(tmp_path)
    assert (verdict["findings"][0]["kind"], verdict["culprits"], status) == (ours, [CULPRIT], 1), verdict


def test_what_pytorch_builds_of_json_has_the_group_and_its_operations(tmp_path):
    recorders = recorded(4, lambda comm, _: comm.all_reduce(zeros(3, 4), comms.ReduceOp.SUM) and None)
    file = tmp_path / "all.json"
    file.write_text("[" + ",".join(recorder.dump_json() for recorder in recorders) + "]")
    ran = subprocess.run([sys.executable, "-c", BUILD_DB, file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    groups, memberships, collectives = map(int, ran.stdout.split())
    assert (groups, memberships, collectives) == (1, 4, 1)


def test_an_entry_has_every_field_and_its_type():
    recorder = recorded(1, lambda comm, _: every_collective(comm))[0]
    dump = json.loads(recorder.dump_json())
    types = {"record_id": int, "pg_id": int, "process_group": list, "collective_seq_id": int, "p2p_seq_id": int, "op_id": int,
             "profiling_name": str, "time_created_ns": int, "duration_ms": float, "input_sizes": list, "input_dtypes": list,
             "output_sizes": list, "output_dtypes": list, "state": str, "time_discovered_started_ns": int,
             "time_discovered_completed_ns": int, "retired": bool, "timeout_ms": int, "is_p2p": bool, "thread_id": str, "thread_name": str}
    for entry in dump["entries"]:
        assert {key: type(value) for key, value in entry.items()} == types
        assert entry["state"] in ("scheduled", "started", "completed") and entry["profiling_name"].startswith("nccl:")
        assert len(entry["process_group"]) == 2 and entry["retired"] and entry["duration_ms"] > 0
    assert re.fullmatch(r"\[\d+(,\d+)*\]", dump["pg_config"]["main"]["ranks"])
    ids = [entry["record_id"] for entry in dump["entries"]]
    created = [entry["time_created_ns"] for entry in dump["entries"]]
    assert ids == sorted(set(ids)) and created == sorted(created) and created[0] > 0
    assert (dump["entries"][0]["input_sizes"], dump["entries"][0]["input_dtypes"]) == ([[3, 4]], ["Float"])
    assert (dump["entries"][1]["input_sizes"], dump["entries"][1]["input_dtypes"]) == ([[5, 6]], ["Long"])
    assert dump["pg_status"]["0"]["last_completed_collective"] == str(len(KNOWN))
    assert {entry["timeout_ms"] for entry in dump["entries"]} == {600000}  # nobody said another one
    assert {entry["profiling_name"].split(":")[0] for entry in dump["entries"]} == {"nccl"}  # the analyzer knows no loopback


def test_reset_and_unregistering_and_what_is_enabled():
    def program(comm, recorder):
        assert recorder.is_enabled()
        for calls in (2, 3, 4):
            for _ in range(calls):
                comm.all_reduce(zeros(2), comms.ReduceOp.SUM)
            assert recorder.size() == len(json.loads(recorder.dump_json())["entries"]) == calls
            assert "entries" not in json.loads(recorder.dump_json(include_completed=False))
            recorder.reset()
            assert recorder.size() == 0 and "entries" not in json.loads(recorder.dump_json())
        recorder.unregister()
        comm.all_reduce(zeros(2), comms.ReduceOp.SUM)
        assert recorder.size() == 0
        recorder.register_with_comm(comm)
        comm.all_reduce(zeros(2), comms.ReduceOp.SUM)
        assert recorder.size() == 1

    assert not comms.FlightRecorderHook(10, isolated=True).is_enabled()
    recorded(1, program)


def test_a_dump_after_ranks_waited_in_vain_has_what_they_waited_in(tmp_path):
    """torchcomms' simulated failure: a rank never joins, the others' time-out ends their wait."""
    over = threading.Barrier(2)

    def rank():
        comm = comms.new_comm("loopback", name="main")
        recorder = comms.FlightRecorderHook(10, isolated=True)
        recorder.register_with_comm(comm)
        if comm.get_rank() == 0:
            over.wait()
            return recorder.dump_pickle()
        try:
            with pytest.raises((RuntimeError, TimeoutError)):
                comm.all_reduce(zeros(2), comms.ReduceOp.SUM, timeout=2)
            return recorder.dump_pickle()
        finally:
            over.wait()

    made = comms.run_ranks(2, rank)
    (tmp_path / "rank_0").write_bytes(made[0])
    (tmp_path / "rank_1").write_bytes(made[1])
    entry, = pickle.loads(made[1])["entries"]
    assert entry["profiling_name"] == "nccl:all_reduce" and entry["state"] != "completed"
    verdict, status = analyze(tmp_path)
    assert (verdict["culprits"], status) == ([0], 1), verdict


def test_how_much_is_kept_the_variables_say(monkeypatch):
    def held(**options):
        comm = comms.new_comm("loopback", name="main")
        recorder = comms.FlightRecorderHook(isolated=True, **options)
        recorder.register_with_comm(comm)
        for _ in range(9):
            comm.all_reduce(zeros(2), comms.ReduceOp.SUM)
        return recorder.size()

    for name in ("TORCHCOMM_FR_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert held() == 9
    monkeypatch.setenv("TORCHCOMM_FR_BUFFER_SIZE", "5")
    monkeypatch.setenv("TORCH_NCCL_TRACE_BUFFER_SIZE", "4")
    assert (held(), held(variables="torch")) == (5, 4)
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "3")
    assert (held(), held(variables="torch"), held(max_entries=2)) == (5, 3, 2)
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "0")  # which switches PyTorch's recorder off, and not this one, that somebody made
    assert held(variables="torch") == 9


def test_without_what_has_completed_nothing_is_left_of_operations_that_waited():
    recorder = recorded(1, lambda comm, _: every_collective(comm))[0]
    assert "entries" not in json.loads(recorder.dump_json(include_completed=False))
    assert pickle.loads(recorder.dump_pickle(include_completed=False))["entries"] == []
    assert len(pickle.loads(recorder.dump_pickle(include_completed=True))["entries"]) == len(KNOWN)


def test_names_of_files_come_from_the_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "a" / "rank_"))
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", str(tmp_path / "b" / "whole"))
    monkeypatch.setenv("TORCH_FR_DUMP_DYNAMIC_FILE_NAME", "true")
    assert comms.FlightRecorderHook(5, isolated=True).dump_file(3) == str(tmp_path / "a" / "rank_3")
    assert comms.FlightRecorderHook(5, isolated=True, variables="torch").dump_file(3) == str(tmp_path / "b" / "whole")
    loaded = pickle.loads((tmp_path / "b" / "whole").read_bytes())
    assert (loaded["version"], loaded["entries"], loaded["rank"]) == ("2.10", [], 3)
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME", "1")
    assert comms.FlightRecorderHook(5, isolated=True).dump_file(4) == str(tmp_path / "a" / "rank_")
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "c" / "one"))  # read at each dump
    assert comms.FlightRecorderHook(5, isolated=True).dump_file(4) == str(tmp_path / "c" / "one")
    assert pickle.loads((tmp_path / "c" / "one").read_bytes())["rank"] == 4
    for name in ("TORCHCOMM_FR_DUMP_TEMP_FILE", "TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME", "TORCH_FR_DUMP_TEMP_FILE"):
        monkeypatch.delenv(name)
    monkeypatch.delenv("TORCH_FR_DUMP_DYNAMIC_FILE_NAME")
    monkeypatch.setenv("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", str(tmp_path / "old_"))
    assert comms.FlightRecorderHook(5, isolated=True, variables="torch").dump_file(2) == str(tmp_path / "old_2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert comms.FlightRecorderHook(5, isolated=True).dump_file(0) == str(tmp_path / "cache/torch/comm_lib_trace_rank_0")
    with pytest.raises(ValueError, match="rank"):
        comms.FlightRecorderHook(5, isolated=True).dump_file()


@pytest.mark.parametrize("word", ["dumps_on_abort", "dumps_on_failure", "dumps_at_exit"])
def test_a_dump_that_nobody_asks_for_needs_a_rank(monkeypatch, word):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match=f"{word} needs a rank for the file's name: give rank=, or set the variable RANK"):
        comms.FlightRecorderHook(5, isolated=True, **{word: True})
    monkeypatch.setenv("RANK", "2")
    assert comms.FlightRecorderHook(5, isolated=True, **{word: True}).size() == 0


@pytest.mark.parametrize("word", ["dumps_on_abort", "dumps_on_failure"])
def test_it_is_dumped_when_a_group_is_given_up_or_an_operation_fails(tmp_path, monkeypatch, word):
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "rank_"))

    over = threading.Event()

    def rank():
        comm = comms.new_comm("loopback", name="main")
        if comm.get_rank() == 1:
            return over.wait()  # a rank that leaves ends what is open
        recorder = comms.FlightRecorderHook(10, isolated=True, rank=4, **{word: True})
        recorder.register_with_comm(comm)
        try:
            comm.all_reduce(zeros(2), comms.ReduceOp.SUM, async_op=True)
            assert not (tmp_path / "rank_4").exists()
            comm.abort("it hangs")
        finally:
            over.set()

    comms.run_ranks(2, rank)
    entry, = pickle.loads((tmp_path / "rank_4").read_bytes())["entries"]
    assert entry["retired"] == (word == "dumps_on_failure")  # before the abort, or when it has failed


@pytest.mark.parametrize("what", [None, 3])
def test_it_says_what_it_is_registered_with(what):
    with pytest.raises(TypeError, match=f"comm is {what}; give a communicator of ringmain.comms, its hooks, a torch"):
        comms.FlightRecorderHook(5, isolated=True).register_with_comm(what)


def test_it_says_how_many_operations_it_had_no_memory_for():
    assert comms.FlightRecorderHook(5, isolated=True).lost() == 0


def test_it_is_dumped_when_the_interpreter_ends(tmp_path):
    program = """
from ringmain import comms
comm = comms.new_comm("loopback", name="main")
recorder = comms.FlightRecorderHook(10, dumps_at_exit=True)
recorder.register_with_comm(comm)
comm.all_reduce([1.0, 2.0], comms.ReduceOp.SUM)
raise SystemExit(3)
"""
    ran = subprocess.run([sys.executable, "-c", program], env=os.environ | {"RANK": "5", "TORCHCOMM_FR_DUMP_TEMP_FILE": str(tmp_path / "rank_")},
                         capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    assert len(pickle.loads((tmp_path / "rank_5").read_bytes())["entries"]) == 1


# --- real jobs ---

FAULTS = {  # what is found, whom it names, and whether as culprit or as suspect: a rank without a file can only be suspected
    "healthy": (None, None), "killed": ("not_joined", "suspects"), "stopped": ("not_joined", "suspects"),
    "asleep": ("not_joined", "culprits"), "skips": ("operation", "culprits"), "size": ("size", "culprits"), "type": ("type", "culprits")}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no gloo")
    folder = tmp_path_factory.mktemp("jobs")
    ran = subprocess.run([sys.executable, HERE / "flight_jobs.py", folder, *FAULTS], capture_output=True, text=True, check=False,
                         env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


@pytest.mark.parametrize("fault", FAULTS)
def test_the_culprit_of_a_real_job_is_named(jobs, fault):
    kind, as_what = FAULTS[fault]
    verdict, status = analyze(jobs / fault)
    left = [0, 1, 2, 3] if fault not in ("killed", "stopped") else [0, 1, 3]
    assert sorted(_ranks(jobs / fault)) == left
    if kind is None:
        assert (verdict["findings"], status) == ([], 0), verdict
        return
    assert status == 1
    first = verdict["findings"][0]
    assert (first["kind"], first[as_what]) == (kind, [CULPRIT]), verdict
    assert (verdict["missing"] == [CULPRIT]) == (fault in ("killed", "stopped"))


@pytest.mark.parametrize(("fault", "theirs"), [
    ("healthy", None), ("asleep", f"missing ranks: {{{CULPRIT}}}"), ("skips", f"Culprit rank {CULPRIT}; Error type: COLLECTIVE_TYPE_MISMATCH"),
    ("size", f"Culprit rank {CULPRIT}; Error type: SIZE_OR_SYNTAX_MISMATCH"), ("type", f"Culprit rank {CULPRIT}; Error type: COLLECTIVE_DTYPE_MISMATCH")])
def test_pytorchs_analyzer_agrees_on_what_pytorchs_own_recorder_left(jobs, tmp_path, fault, theirs):
    """Gloo says no states, so those are planted above."""
    verdict, status = judged(jobs / fault, "--prefix", "pytorch_")
    assert (verdict["culprits"], status) == (([], 0) if theirs is None else ([CULPRIT], 1)), verdict
    merge(jobs / fault, tmp_path, "pytorch_")
    said = fr_trace(tmp_path)
    assert quiet(said) if theirs is None else theirs in said, said


def _ranks(folder):
    return [pickle.loads(file.read_bytes())["rank"] for file in folder.glob("rank_*")]


def test_the_recorder_of_a_group_has_its_time_out_and_pytorchs_numbers(jobs):
    entries = pickle.loads((jobs / "healthy" / "rank_1").read_bytes())["entries"]
    assert {entry["timeout_ms"] for entry in entries} == {600000}
    assert [entry["collective_seq_id"] for entry in entries] == list(range(1, 7))
    assert [entry["profiling_name"] for entry in entries][:4] == ["gloo:all_reduce"] * 3 + ["gloo:all_gather"]


def test_a_recorder_is_registered_with_a_group_that_is_heard_only():
    with pytest.raises(LookupError):
        comms.FlightRecorderHook(5, isolated=True).register_with_comm("nobody")


def test_a_rank_that_is_no_number_is_none(monkeypatch):
    monkeypatch.setenv("RANK", "²")
    with pytest.raises(ValueError, match="needs a rank"):
        comms.FlightRecorderHook(dumps_at_exit=True)
