"""Process groups of one rank, in this process: what is said of them, and what is left of PyTorch's own."""

import gc
import subprocess
import sys
import weakref

import pytest
import ringmain.torch
import torch
import torch.distributed as dist
from alone import meet
from heard import Heard
from ringmain.torch import _methods
from ringmain.torch._groups import Groups

pytestmark = pytest.mark.skipif(not (dist.is_available() and dist.is_gloo_available()), reason="this PyTorch has no gloo")

OTHERS = {name: False for name in ("callbacks", "trace", "guards", "gpu_trace", "monitor", "backends", "waits", "profiler")}
HOOKS = dist.is_available() and hasattr(dist.ProcessGroup, "register_pre_hook")
before_hooks = pytest.mark.skipif(HOOKS, reason="this PyTorch has hooks")


def attach(bus):
    return ringmain.torch.attach(bus, **OTHERS)


@pytest.fixture
def surface(bus):
    with attach(bus) as attachment:
        yield lambda: attachment.report()["torch.distributed"]
        assert not attachment.report()["torch.distributed"].errors, attachment.report()


def ops(heard, channel="collective.issued"):
    return [(event["op"], event["group"], event["sequence"]) for event in heard.on(channel)]


def test_a_group_is_said_from_its_making_to_its_end(bus, surface):
    heard = Heard(bus, "collective.*")
    group = meet()
    name = group.group_name
    dist.all_reduce(torch.ones(5))
    dist.broadcast(torch.ones(5), 0)
    dist.destroy_process_group()
    made, ended = heard.on("collective.group")
    assert (made["change"], made["group"], made["description"]) == ("made", name, "default_pg")
    assert (made["backend"], made["rank"], made["group_size"], made["ranks"], made["source"]) == ("gloo", 0, 1, "0", "torch")
    assert (ended["change"], ended["group"], ended["operations"]) == ("ended", name, 2)
    assert ops(heard) == [("all_reduce", name, 1), ("broadcast", name, 2)]
    first = heard.on("collective.issued")[0]
    assert (first["bytes"], first["in_elements"], first["out_elements"], first["dtype"]) == (20, 5, 5, "float32")
    assert (first["peer"], first["rank"], first["group_size"], first["backend"], first["source"]) == (-1, 0, 1, "gloo", "torch")
    assert (first["timeout_s"], first["p2p_sequence"]) == (1800, 0)  # PyTorch's default
    assert heard.on("collective.issued")[1]["peer"] == 0
    ids = [event["op_id"] for event in heard.on("collective.issued")]
    assert sorted(event["op_id"] for event in heard.on("collective.completed")) == sorted(ids) and 0 not in ids
    assert not heard.on("collective.failed")


def test_a_group_that_was_there_before_is_said_and_heard(bus, alone):
    for _ in range(3):
        dist.all_reduce(torch.ones(1))
    heard = Heard(bus, "collective.*")
    with attach(bus):
        assert [event["change"] for event in heard.on("collective.group")] == ["made"]
        dist.barrier()
        assert ops(heard) == [("barrier", alone.group_name, 4)]


def test_groups_come_and_go_one_by_one(bus, surface, alone):
    heard = Heard(bus, "collective.*")
    part = dist.new_group([0], group_desc="tensor parallel")
    name = part.group_name
    dist.all_reduce(torch.ones(1), group=part)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group(part)
    made, ended = heard.on("collective.group")
    assert (made["change"], made["group"], made["description"]) == ("made", name, "tensor parallel")
    assert (ended["change"], ended["group"], ended["operations"]) == ("ended", name, 1)
    dist.all_reduce(torch.ones(1))
    assert ops(heard) == [("all_reduce", name, 1), ("all_reduce", alone.group_name, 1), ("all_reduce", alone.group_name, 2)]


def test_after_detach_all_is_pytorchs_own_and_a_second_attach_hears_again(bus, alone):
    module = dist.distributed_c10d

    def state():
        return dict(vars(dist.ProcessGroup)), vars(torch._C._distributed_c10d.Work)["wait"], {
            name: value for name, value in vars(module).items() if "register_process_group" in name}

    before = state()
    heard = Heard(bus, "collective.*")
    for sequence in (1, 3):
        with attach(bus):
            assert state() != before
            dist.all_reduce(torch.ones(1))
        assert state() == before
        dist.all_reduce(torch.ones(1))
        assert [event["sequence"] for event in heard.on("collective.issued")][-1] == sequence
    assert len(heard.on("collective.issued")) == 2


def test_where_nobody_listens_nothing_is_said_and_the_count_goes_on(bus, surface, alone):
    dist.all_reduce(torch.ones(1))
    heard = Heard(bus, "collective.*")
    dist.all_reduce(torch.ones(1))
    assert ops(heard) == [("all_reduce", alone.group_name, 2)]


def test_what_cpp_calls_for_is_said_once_and_only_that(bus, surface, alone, eventually):
    import torch.distributed._functional_collectives as functional

    heard = Heard(bus, "collective.*")
    dist.all_reduce(torch.ones(1))
    functional.all_reduce(torch.ones(3), "sum", alone).sum().item()
    dist.barrier()
    functional.all_gather_tensor(torch.ones(3), 0, alone).sum().item()
    assert eventually(lambda: len(heard.on("collective.issued")) >= 4)
    dist.destroy_process_group()  # whatever the recorder has is read before
    assert sorted((sequence, op) for op, _, sequence in ops(heard)) == [
        (1, "all_reduce"), (2, "all_reduce"), (3, "barrier"), (4, "all_gather")]
    ends = {event["sequence"] for event in heard.on("collective.completed")}
    assert ends == ({1, 2, 3, 4} if HOOKS else {1, 3})
    assert [event["operations"] for event in heard.on("collective.group") if event["change"] == "ended"] == [4]


def test_no_tensor_lives_longer_than_its_call(bus, surface, alone):
    heard = Heard(bus, "collective.*")
    tensor = torch.ones(4)
    gone = weakref.ref(tensor)
    dist.all_reduce(tensor)
    assert len(heard.on("collective.completed")) == 1
    del tensor
    gc.collect()
    assert gone() is None


@before_hooks
def test_what_goes_wrong_in_us_does_not_reach_the_program(bus, alone, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(_methods, "called", broken)
    Heard(bus, "collective.*")
    with attach(bus) as attachment:
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        dist.barrier()
        report = attachment.report()["torch.distributed"]
    assert tensor.tolist() == [1, 1]
    assert (report.errors, report.last_error) == (2, "ZeroDivisionError: a mistake of ours")


@before_hooks
def test_a_call_that_raises_has_failed_and_the_program_is_told_by_pytorch(bus, surface, alone):
    heard = Heard(bus, "collective.*")
    with pytest.raises(RuntimeError) as raised:
        alone.allreduce([torch.ones(2), torch.ones(3)])
    [failed] = heard.on("collective.failed")
    assert failed["how"] == "error" and failed["reason"] == str(raised.value).splitlines()[0]
    assert failed["op_id"] == heard.on("collective.issued")[0]["op_id"]
    assert not heard.on("collective.completed")


@pytest.mark.parametrize("detached", [False, True])
def test_a_program_may_end_without_destroying_its_groups(detached):
    program = ("import torch, torch.distributed as dist, ringmain, ringmain.torch\n"
               "bus = ringmain.Bus.process(); attachment = ringmain.torch.attach(bus)\n"
               "bus.subscribe('collective.*', lambda batch: None)\n"
               "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
               "dist.all_reduce(torch.ones(1)); dist.new_group([0])\n" + "attachment.detach()\n" * detached + "print('over')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr


def test_a_forked_child_is_silent_about_groups_of_its_own_and_ends_at_once():
    """The parent has an operation open, whose end the child cannot hear."""
    program = ("import os, sys, time, torch, torch.distributed as dist, ringmain, ringmain.torch\n"
               "from ringmain.torch._collectives import Call, LedgerCollectives\n"
               "bus = ringmain.Bus.process(); attachment = ringmain.torch.attach(bus)\n"
               "bus.subscribe('collective.*', lambda batch: None)\n"
               "LedgerCollectives(bus).group('7', '', 'gloo', 0, 2, [0, 1]).issue(Call('recv', backend='gloo'), True).returned()\n"
               "pid = os.fork()\n"
               "if pid:\n"
               "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
               "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
               "dist.all_reduce(torch.ones(1))\n"
               "report = attachment.report()['torch.distributed']\n"
               "assert not report.errors, report\n"
               "dist.destroy_process_group()\n"
               "from ringmain.torch import _distributed\n"
               "_distributed.time.sleep = lambda seconds: os._exit(9)  # it waits for what cannot come\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and "went wrong" not in done.stderr, done.stderr


def test_without_distributed_it_is_not_live_and_says_why(bus, monkeypatch):
    monkeypatch.setattr(dist, "is_available", lambda: False)
    with attach(bus) as attachment:
        report = attachment.report()["torch.distributed"]
    assert not report.live and report.why_not == "this PyTorch was built without torch.distributed"


def test_a_pytorch_never_seen_before_is_not_live_and_says_why(bus, monkeypatch):
    native = torch._C._distributed_c10d
    kept = native.ProcessGroup
    monkeypatch.setattr(native, "ProcessGroup", type("ProcessGroup", (), {}))
    with attach(bus) as attachment:
        report = attachment.report()["torch.distributed"]
    assert not report.live and report.why_not == "the methods of this PyTorch's ProcessGroup are not known here"
    monkeypatch.setattr(native, "ProcessGroup", "elsewhere")
    with attach(bus) as attachment:
        report = attachment.report()["torch.distributed"]
    assert not report.live and report.why_not == "this PyTorch keeps its ProcessGroup elsewhere"
    assert not hasattr(kept.allreduce, "__wrapped__")


@before_hooks
def test_a_method_that_somebody_took_is_named(bus, alone, monkeypatch):
    with attach(bus) as attachment:
        monkeypatch.setattr(dist.ProcessGroup, "reduce", lambda *_: None)
        assert "reduce (somebody took ours out)" in attachment.report()["torch.distributed"].lacks


@before_hooks
def test_a_recorder_that_is_off_is_said(bus, alone, monkeypatch):
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "0")
    with attach(bus) as attachment:
        assert "PyTorch's recorder is off" in attachment.report()["torch.distributed"].lacks


@before_hooks
def test_what_python_calls_for_during_a_detach_is_not_taken_for_cpps(bus, alone, monkeypatch):
    from ringmain.torch._recorder import Recorder

    def stop(recorder, original=Recorder.stop):
        dist.all_reduce(torch.ones(1))  # as another thread might
        original(recorder)

    heard = Heard(bus, "collective.*")
    monkeypatch.setattr(Recorder, "stop", stop)
    attach(bus).detach()
    assert len(heard.on("collective.issued")) == len(heard.on("collective.completed")) == 1


def test_what_is_open_is_cancelled_when_its_group_ends(bus):
    from ringmain.torch._collectives import Call, LedgerCollectives

    heard = Heard(bus, "collective.*")
    collectives = LedgerCollectives(bus)
    group = collectives.group("7", "", "gloo", 0, 2, [0, 1])
    issuing = group.issue(Call("recv", backend="gloo"), True)
    issuing.returned()
    assert collectives.open == 1
    group.end("the process group was destroyed", 1)
    group.end("again", 1)
    [failed] = heard.on("collective.failed")
    assert (failed["how"], failed["reason"]) == ("cancelled", "the process group was destroyed")
    assert not issuing.operation.completed() and collectives.open == 0
    assert [event["change"] for event in heard.on("collective.group")] == ["made", "ended"]


def test_a_call_inside_another_is_a_part_of_it(bus):
    from ringmain.torch._collectives import Call, LedgerCollectives

    heard = Heard(bus, "collective.*")
    group = LedgerCollectives(bus).group("7", "", "gloo", 0, 2, [0, 1])
    outer = group.issue(Call("allreduce", 1), True)
    inner = group.issue(Call("broadcast", 2), True)
    assert outer.operation.id and not inner.operation.id
    inner.returned()
    outer.returned()
    group.issue(Call("barrier", 2), True).returned()
    assert [event["op"] for event in heard.on("collective.issued")] == ["all_reduce", "barrier"]


def test_a_group_that_nobody_holds_has_ended(bus):
    from ringmain.torch._collectives import LedgerCollectives

    class Group:
        group_name, group_desc = "forgotten", ""

        def name(self):
            return "gloo"

        def rank(self):
            return 0

        def size(self):
            return 1

        def _get_sequence_number_for_group(self):
            return 0

    heard = Heard(bus, "collective.*")
    groups = Groups(LedgerCollectives(bus), lambda error: pytest.fail(str(error)))
    group = Group()
    assert groups.of(group) is groups.of(group)
    del group
    gc.collect()
    assert [event["change"] for event in heard.on("collective.group")] == ["made", "ended"] and not len(groups)
