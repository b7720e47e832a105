"""comms.Watchdog on a group of torch.distributed: two processes of gloo, of which one never joins."""

import json
import os
import pickle
import subprocess
import sys

import pytest
import torch

RANK = """
import datetime, json, os, sys, threading
import torch, torch.distributed as dist
import ringmain, ringmain.torch
from ringmain import comms

folder, rank = sys.argv[1], int(sys.argv[2])
ringmain.torch.attach(ringmain.Bus.process())
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2, timeout=datetime.timedelta(seconds=600))
dist.all_reduce(torch.ones(3))
if rank == 1:
    sys.stdin.read()    # it never joins
    os._exit(0)

recorder = comms.FlightRecorderHook(100, isolated=True, rank=rank)
recorder.register_with_comm(dist.group.WORLD)
dumped, heard = threading.Event(), threading.Event()
told = []

def before_abort(event):
    told.append([event.op, event.group, event.since, recorder.dump_file()])
    dumped.set()

@ringmain.Bus.process().on("collective.overdue")
def overdue(events):
    told.extend([event.op, event.group, event.rank, event.deadline_ns] for event in events)
    heard.set()

by_timeout = comms.Watchdog(period=0.001)
by_timeout.register_with_comm(dist.group.WORLD)
timeout = comms.hooks_of(dist.group.WORLD)._native.timeout
with comms.Watchdog(from_issue=1e-6, period=0.001, before_abort=before_abort, abort=True) as watchdog:
    work = dist.all_reduce(torch.ones(4), async_op=True)
    dumped.wait()
    heard.wait()
print(json.dumps([timeout, comms.hooks_of(dist.group.WORLD)._native.supports_abort, work.is_completed(), *told]))
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        pytest.skip("this PyTorch has no gloo")
    folder = tmp_path_factory.mktemp("job")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCHCOMM_FR_DUMP_TEMP_FILE": str(folder / "rank_"), "PYTHONWARNINGS": "ignore"}
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, folder, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=environment) for rank in range(2)]
    told = ranks[0].stdout.read()  # to its end; only then the other one may go
    ranks[1].communicate()
    assert [rank.wait() for rank in ranks] == [0, 0], told
    return json.loads(told)


def test_the_operation_in_which_a_rank_is_missing_is_said(said):
    _, _, completed, *told = said
    assert not completed
    event = next(words for words in told if len(words) == 4 and words[2] == 0)
    assert event[0] == "all_reduce" and event[3] == 1000
    assert sum(words[2] == 0 for words in told) == 1  # once, by the one that has a deadline


def test_the_program_is_called_and_may_dump_what_its_recorder_has(said):
    op, group, since, path = next(words for words in said[3:] if words[2] != 0)
    assert (op, since) == ("all_reduce", "issued") and group == said[3][1]
    with open(path, "rb") as file:
        entry = pickle.load(file)["entries"][-1]
    assert (entry["profiling_name"], entry["retired"]) == ("gloo:all_reduce", False)


def test_pytorchs_time_out_is_the_deadline_of_a_group_that_it_is_registered_with(said):
    assert said[0] == 600
