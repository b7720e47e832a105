"""PyTorch and CUDA's own source in one process: with PyTorch's genuine dispatch and profilers, and the real source over a
driver, runtime and CUPTI that are played."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gpu_dispatch
import pytest
import torch

BUILD = Path(os.environ.get("RINGMAIN_BUILD", "."))
FAKES = BUILD / "tests/adapters/cuda/fakes/lib"
INJECTED = BUILD / "lib/ringmain/libringmain_cuda_inject.so"
pytest.importorskip("ringmain.cuda", reason="this build has no source of CUDA's calls")
pytestmark = [pytest.mark.skipif(not (FAKES / "libcuda.so.1").exists(), reason=f"there is no {FAKES}: the fakes were not built"),
              pytest.mark.skipif(torch.version.cuda is not None, reason="a PyTorch built for CUDA does not load on a runtime that is played")]

BEGIN = """
import ctypes, json, os, sys
runtime = ctypes.CDLL("libcudart.so.13")
import torch
torch.version.cuda, torch.__version__ = "13.0", "2.13.0+cu130"  # as if it were one whose Kineto takes CUPTI's place
import ringmain, ringmain.cuda, ringmain.torch
from ringmain.torch import _profiler
from torch.profiler import profile
bus = ringmain.Bus("of a test")
heard = []
bus.subscribe("cuda.>", lambda batch: heard.extend((batch.channel, e._asdict()) for e in batch))
bus.subscribe("torch.memory_block", lambda batch: heard.extend((batch.channel, e._asdict()) for e in batch))
trace = ctypes.CDLL(sys.argv[1])
trace.fire_record.argtypes = [ctypes.c_size_t, ctypes.c_size_t]

def call():
    # What PyTorch does: the calls, and its trace of them.
    event = ctypes.c_void_p()
    assert runtime.cudaEventCreate(ctypes.byref(event)) == 0
    assert runtime.cudaEventRecord(event, None) == 0
    trace.fire_record(event.value, 0)
    trace.fire_block(0xADD0)

def told():
    # Who told the records since the last time, and how many blocks there were.
    assert bus.flush(600)
    records = [e["layer"] for channel, e in heard if channel == "cuda.event_record"]
    blocks = sum(channel == "torch.memory_block" for channel, _ in heard)
    states = [(e["state"], e["owner"]) for channel, e in heard if channel == "cuda.source"]
    heard.clear()
    return records, blocks, states
"""
TORCH, RUNTIME = ["torch"], ["runtime"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with_cuda")
    gpu_dispatch.build(folder)
    return folder / "fire_gpu_trace.so"


@pytest.fixture
def run(library):
    def run(program, **variables):
        folders = os.pathsep.join(filter(None, [str(FAKES), os.environ.get("LD_LIBRARY_PATH")]))
        done = subprocess.run([sys.executable, "-c", BEGIN + program, str(library)], capture_output=True, text=True, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": folders, **variables})
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout), done.stderr

    return run


@pytest.mark.parametrize("attach", ["ringmain.cuda.attach(bus)", "FromElsewhere()"], ids=["python", "not_by_python"])
@pytest.mark.parametrize("first", ["torch", "cuda"])
def test_each_call_is_told_once_whoever_attached_and_in_whichever_order(run, attach, first):
    said, _ = run(f"""
from ringmain import _cuda_library
class FromElsewhere:  # without ringmain.cuda
    def __init__(self):
        self.library = _cuda_library.load()
        self.source = self.library.attach(bus._native, "")
    def detach(self):
        self.library.detach(self.source)
if {first!r} == "torch":
    ringmain.torch.attach(bus, gpu_trace=True)
    call()
    before, source = told(), {attach}
else:
    source = {attach}
    ringmain.torch.attach(bus, gpu_trace=True)
    before = None
rounds = []
for _ in range(2):
    call()
    rounds.append(told())
source.detach()
call()
print(json.dumps([before, rounds, told()]))
""")
    before, rounds, after = said
    assert before is None or before == [TORCH, 1, []]
    assert rounds == [[RUNTIME, 1, [["attached", ""]]], [RUNTIME, 1, []]]
    assert after == [TORCH, 1, [["detached", ""]]]


def test_a_source_on_another_bus_leaves_this_one_to_pytorch(run):
    said, _ = run("""
ringmain.torch.attach(bus, gpu_trace=True)
other = ringmain.Bus("another")
source = ringmain.cuda.attach(other)
call()
print(json.dumps(told()))
source.detach()
""")
    assert said == [TORCH, 1, []]


def test_around_a_profiler_the_source_lets_go_and_pytorch_tells_the_calls(run):
    said, _ = run("""
ringmain.torch.attach(bus, gpu_trace=True)
source = ringmain.cuda.attach(bus)
call()
rounds = [told()]
for _ in range(2):
    with profile() as running:
        torch.ones(4).sum()
        call()
        rounds.append(told())
    assert any("sum" in event.key for event in running.key_averages())
    call()
    rounds.append(told())
print(json.dumps(rounds))
""")
    lent, back = [TORCH, 1, [["lent", "torch.profiler"]]], [RUNTIME, 1, [["attached", ""]]]
    assert said == [back, lent, back, lent, back]


KINETO = """
cupti = ctypes.CDLL("libcupti.so.13")
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
kineto, place = CALLBACK(lambda *_: None), ctypes.c_void_p()
def kineto_subscribes():
    return cupti.cuptiSubscribe(ctypes.byref(place), kineto, None)
"""


def test_kineto_finds_the_place_and_keeps_it_until_it_gives_it_back(run):
    said, _ = run(KINETO + """
clock = [0.0]
_profiler.loan._clock = lambda: clock[0]
ringmain.torch.attach(bus, gpu_trace=True)
source = ringmain.cuda.attach(bus)
told()
with profile():
    taken = kineto_subscribes()  # as libkineto_init does
during = told()
clock[0] += 10
call()
kept = told(), source.state, source.take_back()
assert cupti.cuptiUnsubscribe(place) == 0  # as with TEARDOWN_CUPTI=1
clock[0] += 10
trace.fire_record(1, 0)  # the next event of PyTorch's is a chance
back = source.state
told()
call()
print(json.dumps([taken, during, kept, back, told()]))
""")
    taken, during, kept, back, after = said
    assert taken == 0 and during == [[], 0, [["lent", "torch.profiler"]]]
    assert kept == [[TORCH, 1, []], "lent", False]
    assert back == "attached" and after == [RUNTIME, 1, []]


def test_with_hold_kineto_finds_the_place_taken_and_the_user_is_told(run):
    said, errors = run(KINETO + """
source = ringmain.cuda.attach(bus, hold=True)
ringmain.torch.attach(bus, gpu_trace=True)
for _ in range(2):
    with profile():
        call()
        taken = kineto_subscribes()
print(json.dumps([taken, source.state, told()]))
""")
    taken, state, heard = said
    assert taken == 39 and state == "attached" and heard == [RUNTIME * 2, 2, [["attached", ""]]]
    assert errors.count("torch.profiler will record nothing of the GPU") == 1


def test_a_program_that_only_attached_cuda_steps_aside_as_well(run):
    said, _ = run("""
source = ringmain.cuda.attach(bus)  # and no ringmain.torch.attach()
with profile():
    during = source.state
print(json.dumps([during, source.state]))
""")
    assert said == ["lent", "attached"]


@pytest.mark.skipif(not INJECTED.exists(), reason=f"there is no {INJECTED}: it was not built")
def test_below_ringmain_run_each_call_is_told_once_and_a_profiler_finds_the_place(library, tmp_path):
    program = BEGIN.replace('ringmain.Bus("of a test")', "ringmain.Bus.process()") + KINETO + """
ringmain.torch.attach(bus, gpu_trace=True)
runtime.cudaFree(None)  # CUDA is initialised here, and the source attaches
call()
with profile():
    taken = kineto_subscribes()
    call()
    assert cupti.cuptiUnsubscribe(place) == 0
call()
assert bus.flush(600)
print(json.dumps(taken))
"""
    folders = os.pathsep.join(filter(None, [str(FAKES), os.environ.get("LD_LIBRARY_PATH")]))
    done = subprocess.run([BUILD / "bin/ringmain", "run", "--source", "cuda", "--sink", f"json_lines:{tmp_path}/e.jsonl", "--",
                           sys.executable, "-c", program, str(library)], capture_output=True, text=True, check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": folders})
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stdout + done.stderr
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert [line["layer"] for line in lines if line["channel"] == "cuda.event_record"] == RUNTIME + TORCH + RUNTIME
    assert sum(line["channel"] == "torch.memory_block" for line in lines) == 3
    notices = sorted((line for line in lines if line["channel"] == "cuda.source"), key=lambda line: line["time_ns"])
    states = [line["state"] for line in notices]
    assert states[:3] == ["attached", "lent", "attached"]
