"""The hooks of PyTorch 2.14 and later, on a stand-in: a group with exactly the hooks that PyTorch documents, and no more.
That PyTorch's own behave so is shown where a PyTorch with hooks runs the other tests."""

from types import SimpleNamespace

import pytest
import torch
from heard import Heard
from ringmain import comms
from ringmain.torch._collectives import CollectiveVetoed, LedgerCollectives
from ringmain.torch._follow import Works
from ringmain.torch._groups import Groups
from ringmain.torch._pg_hooks import HOOK_ID, HookCalls


class Future:
    """As torch.futures.Future: callbacks are called when it is done, with it."""

    def __init__(self):
        self._callbacks, self._done, self._error = [], False, None

    def add_done_callback(self, callback):
        self._callbacks.append(callback)
        if self._done:
            callback(self)

    def value(self):
        if self._error:
            raise self._error
        return []

    def finish(self, error=None):
        self._done, self._error = True, error
        for callback in self._callbacks:
            callback(self)


class Work:
    def __init__(self, future):
        self.future = future

    def get_future(self):
        if self.future is None:
            raise RuntimeError("Work::getFuture not implemented.")
        return self.future

    def is_completed(self):
        return False

    def wait(self):
        return True


def group_class():
    class StandIn:
        """Registration replaces silently, hooks run in the order of the table, and what one raises fails the call."""

        def __init__(self, name="0", backend="gloo"):
            self.group_name, self.group_desc, self._backend = name, "a stand-in", backend
            self.pre, self.post, self.op_id, self.number, self.registered = {}, {}, 0, 0, []

        def name(self):
            return self._backend

        def rank(self):
            return 1

        def size(self):
            return 4

        def _get_sequence_number_for_group(self):
            return self.number

        def register_pre_hook(self, hook_id, hook):
            self.registered.append(hook_id)
            self.pre[hook_id] = hook

        def register_post_hook(self, hook_id, hook):
            self.post[hook_id] = hook

        def run(self, name, work=None, inputs=(), outputs=(), root=-1, async_op=False, error=None):
            """What the dispatcher does: an id is taken while there is a hook, the backend numbers what it takes."""
            self.op_id += 1
            op_id, name = self.op_id, SimpleNamespace(name=name)
            for hook in list(self.pre.values()):
                hook(SimpleNamespace(name=name, async_op=async_op, input_tensors=list(inputs), output_tensors=list(outputs),
                                     root=root, op_id=op_id))
            if error is not None:
                raise error
            self.number += 1
            for hook in list(self.post.values()):
                hook(SimpleNamespace(name=name, async_op=async_op, work=work, op_id=op_id))
            return work

        def allreduce(self, tensors, work=None, error=None):
            """As a method that Python calls."""
            return self.run("ALLREDUCE", work, tensors, error=error)

        def broadcast(self, tensors, work=None):
            return self.run("BROADCAST", work, tensors, root=0)

    return StandIn


class Hooked:
    """The surface's parts, put together for the stand-in."""

    def __init__(self, bus, collectives=None):
        self.errors = []
        self.kind = group_class()
        self.collectives = collectives or LedgerCollectives(bus)
        self.works = Works(self.collectives, self.errors.append)
        self.calls = HookCalls(self.collectives, self.works, self.errors.append)
        self.groups = Groups(self.collectives, self.errors.append, self.calls.add)
        self.calls.hook_in(self.kind)

    def group(self, *of):
        made = self.kind(*of)
        self.groups.of(made)
        return made


@pytest.fixture
def hooked(bus):
    made = Hooked(bus)
    yield made
    assert not made.errors


@pytest.fixture
def heard(bus):
    return Heard(bus, "collective.*")


def test_one_pair_a_group_which_stays_and_is_silent_when_we_are_gone(bus, hooked, heard):
    group = hooked.group()
    hooked.groups.of(group)
    group.run("BARRIER")
    hooked.calls.hook_out()
    group.run("BARRIER")
    assert group.registered == [HOOK_ID] and list(group.pre) == list(group.post) == [HOOK_ID]
    assert [event["sequence"] for event in heard.on("collective.issued")] == [1]
    again = Hooked(bus)
    again.groups.of(group)
    group.run("BARRIER")
    assert group.registered == [HOOK_ID]
    assert [event["sequence"] for event in heard.on("collective.issued")] == [1, 3]
    assert "allreduce" in vars(hooked.kind) and not hasattr(hooked.kind.allreduce, "__wrapped__")


def test_an_operation_is_issued_and_ends_when_its_future_does(hooked, heard):
    group, future = hooked.group(), Future()
    group.run("ALLREDUCE", Work(future), [torch.ones(6)], async_op=True)
    [issued] = heard.on("collective.issued")
    assert (issued["op"], issued["sequence"], issued["bytes"], issued["in_elements"], issued["out_elements"]) == (
        "all_reduce", 1, 24, 6, 6)
    assert (issued["rank"], issued["group_size"], issued["backend"], issued["asynchronous"]) == (1, 4, "gloo", True)
    assert not heard.on("collective.completed")
    future.finish()
    assert [event["op_id"] for event in heard.on("collective.completed")] == [issued["op_id"]]


@pytest.mark.parametrize("text, how", [("Connection closed by peer", "error"), ("Timed out waiting 1 ms", "timed_out")])
def test_a_future_that_failed_is_a_failure_with_its_reason(hooked, heard, text, how):
    group, future = hooked.group(), Future()
    group.run("ALLREDUCE", Work(future))
    future.finish(RuntimeError(text + "\nException raised from a line of C++"))
    [failed] = heard.on("collective.failed")
    assert (failed["how"], failed["reason"]) == (how, text)


def test_a_backend_that_has_waited_gives_no_work_and_is_done(hooked, heard):
    hooked.group().run("BARRIER", None)
    assert len(heard.on("collective.completed")) == 1


def test_the_end_on_nccl_is_not_said_and_nothing_stays_open(hooked, heard):
    future = Future()
    hooked.group("0", "nccl").run("ALLREDUCE", Work(future), [torch.ones(1)])
    future.finish()  # at its enqueueing
    assert [event["backend"] for event in heard.on("collective.issued")] == ["nccl"]
    assert not heard.on("collective.completed") and not heard.on("collective.failed")
    assert hooked.collectives.open == 0


def test_point_to_point_has_a_peer_and_does_not_count_as_a_collective(hooked, heard):
    group = hooked.group()
    group.run("SEND", None, [torch.ones(2)], root=3)
    group.run("RECV", None, [], [torch.ones(2)], root=2)
    group.run("BARRIER")
    said = [(event["op"], event["peer"], event["sequence"], event["in_elements"], event["out_elements"])
            for event in heard.on("collective.issued")]
    assert said == [("send", 3, 0, 2, 0), ("recv", 2, 0, 0, 2), ("barrier", -1, 1, 0, 0)]


def test_point_to_point_of_which_nobody_heard_does_not_count_either(bus, hooked):
    group = hooked.group()
    group.run("SEND", None, [torch.ones(2)], root=3)
    heard = Heard(bus, "collective.*")
    group.run("BARRIER")
    assert [event["sequence"] for event in heard.on("collective.issued")] == [1]


@pytest.mark.parametrize("name, word", [("ALLGATHER", "all_gather"), ("ALLGATHER_BASE", "all_gather"),
                                        ("REDUCE_SCATTER_BASE", "reduce_scatter"), ("ALLTOALL_BASE", "all_to_all"),
                                        ("ALLREDUCE_COALESCED", "all_reduce_coalesced"), ("NEVER_SEEN", "never_seen")])
def test_words_of_this_and_of_later_versions(hooked, heard, name, word):
    hooked.group().run(name, None, [torch.ones(2)], [torch.ones(8)])
    [issued] = heard.on("collective.issued")
    assert (issued["op"], issued["bytes"]) == (word, 32)


def test_making_a_group_is_no_operation(hooked, heard):
    hooked.group().run("SPLIT")
    hooked.group().run("NEW_WINDOW")
    assert not heard.on("collective.issued")


def test_a_call_that_raises_has_failed_with_what_was_raised(hooked, heard):
    group = hooked.group()
    with pytest.raises(ValueError):
        group.allreduce([torch.ones(1)], error=ValueError("no such type"))
    [failed] = heard.on("collective.failed")
    assert (failed["reason"], failed["how"]) == ("no such type", "error")
    group.run("BARRIER")
    assert [event["op"] for event in heard.on("collective.issued")] == ["all_reduce", "barrier"]


def test_a_call_of_cpp_that_raises_has_failed_once_the_next_one_comes(hooked, heard):
    group = hooked.group()
    with pytest.raises(ValueError):
        group.run("ALLREDUCE", error=ValueError())
    assert not heard.on("collective.failed")
    group.run("BARRIER")
    assert [event["op"] for event in heard.on("collective.failed")] == ["all_reduce"]
    assert [event["op"] for event in heard.on("collective.completed")] == ["barrier"]


def test_what_another_hook_calls_for_is_an_operation_of_its_own(hooked, heard):
    group, inner = hooked.group(), hooked.group("1")
    group.pre[5] = lambda args: inner.run("BARRIER")
    group.run("ALLREDUCE", None, [torch.ones(1)])
    assert [event["op"] for event in heard.on("collective.issued")] == ["all_reduce", "barrier"]
    assert [event["op"] for event in heard.on("collective.completed")] == ["barrier", "all_reduce"]
    assert not heard.on("collective.failed")


def test_a_work_without_a_future_ends_where_python_waits_for_it(hooked, heard):
    group = hooked.group()
    work = group.broadcast([torch.ones(1)], Work(None))
    assert not heard.on("collective.completed")
    assert hooked.works.wait(Work.wait, work)
    [began, ended] = heard.on("collective.wait")
    assert (began["edge"], ended["edge"], began["op"]) == ("begin", "end", "broadcast") and ended["duration_ns"] > 0
    assert began["op_id"] == heard.on("collective.completed")[0]["op_id"] == heard.on("collective.issued")[0]["op_id"]
    assert hooked.works.wait(Work.wait, work) and len(heard.on("collective.completed")) == 1


def test_a_work_without_a_future_that_nobody_waits_for_is_unknown(hooked, heard):
    group = hooked.group()
    group.broadcast([torch.ones(1)], Work(None))
    assert [event["how"] for event in heard.on("collective.failed")] == ["unknown"]


def test_a_wait_that_raises_is_a_failure(hooked, heard):
    def late(work):
        raise RuntimeError("Timed out waiting")

    group = hooked.group()
    work = group.broadcast([torch.ones(1)], Work(None))
    with pytest.raises(RuntimeError):
        hooked.works.wait(late, work)
    assert [event["how"] for event in heard.on("collective.failed")] == ["timed_out"]
    assert [event["edge"] for event in heard.on("collective.wait")] == ["begin", "end"]


def test_a_wait_for_what_is_done_is_none(hooked, heard):
    future = Future()
    work = hooked.group().allreduce([torch.ones(1)], Work(future))
    hooked.works.wait(Work.wait, work)
    future.finish()
    work.is_completed = lambda: True
    hooked.works.wait(Work.wait, work)
    assert [event["edge"] for event in heard.on("collective.wait")] == ["begin", "end"]


def test_a_refusal_fails_the_call_before_the_backend_sees_it(bus, heard):
    class Refusing(LedgerCollectives):
        def group(self, *of):
            return SimpleNamespace(heard=True, shows=False, issue=refuse, end=lambda *_: None)

    def refuse(call, ends, shown):
        raise CollectiveVetoed(f"no {call.op} now", "now")

    hooked = Hooked(bus, Refusing(bus))
    group = hooked.group()
    with pytest.raises(CollectiveVetoed, match="no ALLREDUCE now"):
        group.allreduce([torch.ones(1)])
    assert group.number == 0 and not hooked.errors and not hooked.calls.here.begun


def test_a_refusal_that_pytorch_made_an_error_of_its_own_is_raised_again_where_python_called(bus, hooked, heard):
    group = hooked.group()
    relay = group.pre[HOOK_ID]

    def as_pytorch(args):
        try:
            relay(args)
        except Exception as error:
            raise RuntimeError(f"CollectiveVetoed: {error}") from None

    group.pre[HOOK_ID] = as_pytorch
    seen = []
    comms.hooks_of(group, bus=bus).register_pre_hook(lambda args: seen.append((args.name, args.async_op, len(args.inputs))) or "no")
    with pytest.raises(CollectiveVetoed) as refused:
        group.allreduce([torch.ones(1)])
    assert refused.value.reason == "no"
    with pytest.raises(RuntimeError, match="a hook refused all_reduce") as of_cpp:
        group.run("ALLREDUCE", None, [torch.ones(1)], async_op=True)
    assert not isinstance(of_cpp.value, CollectiveVetoed) and group.number == 0
    assert seen == [("all_reduce", False, 1), ("all_reduce", True, 1)]
    assert [(event["how"], event["sequence"]) for event in heard.on("collective.failed")] == [("vetoed", 1)] * 2


def test_on_nccl_a_refusal_is_paired_and_nothing_stays_open(bus, hooked, heard):
    group = hooked.group("0", "nccl")
    handle = comms.hooks_of(group, bus=bus).register_pre_hook(lambda args: False, name="guard")
    with pytest.raises(CollectiveVetoed):
        group.allreduce([torch.ones(1)])
    assert hooked.collectives.open == 0 and handle.remove() == "done"
    group.allreduce([torch.ones(1)])
    assert hooked.collectives.open == 0 and len(heard.on("collective.issued")) == 2
    assert [event["reason"] for event in heard.on("collective.failed")] == ["vetoed by guard"]


def test_what_goes_wrong_in_us_does_not_reach_pytorch(bus, heard):
    hooked = Hooked(bus)
    group = hooked.group()
    group.run("ALLREDUCE", None, ["no tensor"])
    assert len(hooked.errors) == 1 and group.number == 1


def test_a_group_that_takes_no_hooks_is_named(bus):
    hooked = Hooked(bus)
    hooked.kind.register_pre_hook = None
    hooked.group("sealed")
    assert hooked.calls.missed == ["sealed"] and len(hooked.errors) == 1


@pytest.mark.parametrize("again", [False, True])
def test_what_began_before_a_detach_is_over_when_its_call_is(bus, hooked, heard, again):
    group, other, future = hooked.group(), Hooked(bus), Future()

    def leave(args):
        group.pre.pop(5)
        hooked.calls.hook_out()
        if again:
            other.groups.of(group)

    group.pre[5] = leave
    group.run("ALLREDUCE", Work(future), [torch.ones(1)])
    future.finish()
    group.run("BARRIER")
    assert [event["op"] for event in heard.on("collective.issued")] == ["all_reduce"] + ["barrier"] * again
    assert len(heard.on("collective.completed")) == 1 + again and not heard.on("collective.failed")
    assert not hooked.calls.here.begun and not other.errors
