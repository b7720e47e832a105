"""Hooks on PyTorch's process groups: found by the group, called around each call, and able to refuse it."""

import gc
import signal
import threading

import pytest
import ringmain.torch
import torch
import torch.distributed as dist
from alone import meet
from heard import Heard
from ringmain import comms
from ringmain.torch import CollectiveVetoed

pytestmark = pytest.mark.skipif(not (dist.is_available() and dist.is_gloo_available()), reason="this PyTorch has no gloo")

OTHERS = {name: False for name in ("callbacks", "trace", "guards", "gpu_trace", "monitor", "backends", "waits", "profiler")}
NATIVE = dist.is_available() and hasattr(dist.ProcessGroup, "register_pre_hook")


@pytest.fixture
def attachment(bus):
    with ringmain.torch.attach(bus, **OTHERS) as attached:
        yield attached
    assert not attached.report()["torch.distributed"].errors, attached.report()


@pytest.fixture(params=["before", "after"])
def group(request, bus):
    """A group that was made before attach(), and one that was made after."""
    made = meet() if request.param == "before" else None
    with ringmain.torch.attach(bus, **OTHERS) as attached:
        yield made or meet()
        if dist.is_initialized():
            dist.destroy_process_group()
    assert not attached.report()["torch.distributed"].errors, attached.report()


def test_each_way_of_writing_hooks_is_called_with_the_callers_own_tensors(group):
    hooks, seen, tensor = comms.hooks_of(group), [], torch.ones(3)
    hooks.register_pre_hook(lambda args: seen.append(("args", args.name.value, args.tensor is tensor, args.op, args.async_op, args.op_id)))
    hooks.register_pre_hook(lambda name, op_id, args: seen.append(("torchcomms", name.value, args.tensor is tensor, op_id)))
    hooks.register_pre_hook(9, lambda args: seen.append(("c10d", args.name.name, args.input_tensors[0] is tensor, args.output_tensors,
                                                         args.root, args.op_id)))
    hooks.register_post_hook(lambda args: seen.append(("args", args.outcome, args.work is not None, args.op_id)))
    hooks.register_post_hook(lambda op_id, args: seen.append(("torchcomms", op_id)))
    hooks.register_post_hook(9, lambda args: seen.append(("c10d", args.name.name, args.op_id)))
    ends = []
    hooks.register_completion_hook(lambda end: ends.append((end.op_id, end.how)))
    dist.all_reduce(tensor, dist.ReduceOp.SUM if NATIVE else dist.ReduceOp.MAX, group=group)
    [op_id] = {words[-1] for words in seen}
    assert seen == [("args", "all_reduce", True, None if NATIVE else comms.ReduceOp.MAX, False, op_id),
                    ("torchcomms", "all_reduce", True, op_id), ("c10d", "ALLREDUCE", True, [], -1, op_id),
                    ("args", "issued", True, op_id), ("torchcomms", op_id), ("c10d", "ALLREDUCE", op_id)]
    assert ends == [(op_id, "completed")]
    assert comms.hooks_of(group).unregister_pre_hook(9) == "done"  # the id is the group's, whoever asks
    before = len(seen)
    dist.all_reduce(tensor, group=group)
    assert len(seen) == before + 5


def test_every_operation_has_the_arguments_that_torchcomms_gives_it(bus, attachment, alone):
    seen = []
    comms.hooks_of(alone).register_pre_hook(lambda args: seen.append((
        args.name.value, [len(args.inputs), len(args.outputs)], args.root, args.peer, args.op and args.op.type.name)))
    x, each, many = torch.ones(2), [torch.ones(2)], torch.ones(2)
    dist.broadcast(x, 0)
    dist.reduce(x, 0, dist.ReduceOp.MIN)
    dist.all_gather(each, x)
    dist.all_gather_into_tensor(many, x)
    dist.gather(x, each, 0)
    dist.scatter(x, each, 0)
    dist.reduce_scatter(x, each)
    dist.reduce_scatter_tensor(x, many)
    dist.all_to_all_single(torch.ones(2), many)
    dist.all_to_all_single(torch.ones(2), many, [2], [2])
    dist.barrier()
    names = [one[0] for one in seen]
    if NATIVE:  # one name for several, and no reduction
        assert [name.removesuffix("_single") for name in names] == [
            "broadcast", "reduce", "all_gather", "all_gather", "gather", "scatter", "reduce_scatter", "reduce_scatter", "all_to_all",
            "all_to_all", "barrier"]
        return
    assert seen == [
        ("broadcast", [1, 1], 0, None, None), ("reduce", [1, 1], 0, None, "MIN"), ("all_gather", [1, 1], None, None, None),
        ("all_gather_single", [1, 1], None, None, None), ("gather", [1, 1], 0, None, None), ("scatter", [1, 1], 0, None, None),
        ("reduce_scatter", [1, 1], None, None, "SUM"), ("reduce_scatter_single", [1, 1], None, None, "SUM"),
        ("all_to_all_single", [1, 1], None, None, None), ("all_to_all_v_single", [1, 1], None, None, None),
        ("barrier", [0, 0], None, None, None)]


def refuse_by_word(args):
    return "too large"


def refuse_by_raising(args):
    raise ValueError("too large")


@pytest.mark.parametrize("hook, reason", [(refuse_by_word, "too large"), (refuse_by_raising, "ValueError: too large"),
                                          (lambda args: False, "vetoed by guard")])
def test_a_refused_call_is_not_made_and_leaves_a_paired_record(bus, group, hook, reason):
    heard, after = Heard(bus, "collective.*"), []
    handle = comms.hooks_of(group).register_pre_hook(hook, name="guard")
    comms.hooks_of(group).register_post_hook(lambda args: after.append((args.outcome, args.reason, args.work)))
    number = group._get_sequence_number_for_group()
    with pytest.raises(CollectiveVetoed, match="a hook refused all_reduce of group") as refused:
        dist.all_reduce(torch.ones(2))
    assert refused.value.reason == reason and isinstance(refused.value, comms.OperationVetoed)
    assert isinstance(refused.value.__cause__, ValueError) == (hook is refuse_by_raising)
    assert group._get_sequence_number_for_group() == number
    assert after == [("refused", reason, None)]
    [issued], [failed] = heard.on("collective.issued"), heard.on("collective.failed")
    assert (failed["op_id"], failed["how"], failed["reason"]) == (issued["op_id"], "vetoed", reason)
    assert handle.remove() == "done"
    dist.all_reduce(torch.ones(2))
    assert [event["sequence"] for event in heard.on("collective.issued")] == [issued["sequence"]] * 2  # it was the next all the same
    assert len(heard.on("collective.completed")) == 1 and after[1][0] == "issued"


def test_a_refusal_needs_no_subscriber(group):
    comms.hooks_of(group).register_pre_hook(lambda args: "no")
    with pytest.raises(CollectiveVetoed, match="no"):
        dist.barrier()


def test_functional_collectives_are_refused_where_pytorch_has_hooks(bus, attachment, alone, eventually):
    import torch.distributed._functional_collectives as functional

    heard, asked = Heard(bus, "collective.*"), []
    comms.hooks_of(alone).register_pre_hook(lambda args: asked.append(args.name) or "no")
    if NATIVE:
        with pytest.raises(RuntimeError, match="a hook refused"):
            functional.all_reduce(torch.ones(3), "sum", alone).sum().item()
        assert [event["how"] for event in heard.on("collective.failed")] == ["vetoed"]
    else:  # they are issued by C++, and seen afterwards
        functional.all_reduce(torch.ones(3), "sum", alone).sum().item()
        assert eventually(lambda: heard.on("collective.issued")) and not asked
        assert "and hooks on it" in attachment.report()["torch.distributed"].lacks


def test_the_hooks_of_a_group_hear_no_other_and_end_with_it(bus, attachment, alone):
    part, seen = dist.new_group([0], group_desc="tensor parallel"), []
    hooks = comms.hooks_of(part)
    handle = hooks.register_pre_hook(lambda args: seen.append(args.group))
    dist.all_reduce(torch.ones(1))
    dist.all_reduce(torch.ones(1), group=part)
    name = part.group_name
    assert seen == [name]
    dist.destroy_process_group(part)
    assert handle.remove() == "done"
    with pytest.raises(ValueError, match="has ended"):
        hooks.register_post_hook(lambda args: None)
    with pytest.raises(LookupError, match="knows no communicator"):
        comms.hooks_of(part)
    with pytest.raises(LookupError, match="or it has ended"):
        comms.hooks_of(name)
    dist.all_reduce(torch.ones(1))
    assert seen == [name]


def test_detach_ends_hooks_and_what_is_under_way_still_ends(bus, alone):
    heard, seen = Heard(bus, "collective.*"), []
    attached = ringmain.torch.attach(bus, **OTHERS)
    hooks = comms.hooks_of(alone)
    hooks.register_pre_hook(lambda args: seen.append("before") or "no")
    attached.detach()
    dist.all_reduce(torch.ones(1))
    assert not seen and not heard.on("collective.issued")
    with pytest.raises(ValueError, match="has ended"):
        hooks.register_pre_hook(lambda args: None)
    with pytest.raises(LookupError):
        comms.hooks_of(alone, bus=bus)
    assert [event["change"] for event in heard.on("collective.group")] == ["made", "ended"]
    with ringmain.torch.attach(bus, **OTHERS):
        comms.hooks_of(alone).register_pre_hook(lambda args: seen.append("again"))
        dist.all_reduce(torch.ones(1))
    assert seen == ["again"]


def test_shapes_are_said_only_where_somebody_hears_them(bus, attachment, alone, monkeypatch):
    from ringmain.torch._c10d import Called

    made = []
    original = Called.shown
    monkeypatch.setattr(Called, "shown", lambda called: made.append(called.op) or original(called))
    issued = Heard(bus, "collective.issued")
    dist.all_reduce(torch.ones(1))
    assert len(issued.events) == 1 and not made
    shapes = Heard(bus, "collective.shapes")
    dist.all_reduce(torch.ones(2, 3, dtype=torch.bfloat16))
    dist.all_gather([torch.ones(4)], torch.ones(4))
    dist.barrier()
    said = [(event["op"], event["input"], event["output"], event["inputs"], event["outputs"], event["source"])
            for event in shapes.on("collective.shapes")]
    assert said[:2] == [("all_reduce", "bfloat16[2,3]", "bfloat16[2,3]", 1, 1, "torch"), ("all_gather", "float32[4]", "float32[4]", 1, 1, "torch")]
    assert [event["op_id"] for event in shapes.on("collective.shapes")][0] == issued.on("collective.issued")[1]["op_id"]


def test_hooks_that_come_and_go_in_another_thread_cost_no_operation(bus, attachment, alone):
    hooks, heard, over, rounds = comms.hooks_of(alone), Heard(bus, "collective.*"), threading.Event(), []
    errors = []

    def churn():
        try:
            while not over.is_set():
                handles = [hooks.register_pre_hook(lambda args: None), hooks.register_post_hook(lambda args: None),
                           hooks.register_completion_hook(lambda end: None)]
                rounds.append([handle.remove() for handle in handles])
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    operations = 0
    while operations < 300 or len(rounds) < 20:
        dist.all_reduce(torch.ones(1))
        operations += 1
    over.set()
    thread.join()
    assert not errors and {word for words in rounds for word in words} == {"done"}
    assert len(heard.on("collective.issued")) == len(heard.on("collective.completed")) == operations


def test_no_hook_keeps_a_tensor_or_a_work(attachment, alone):
    import weakref

    comms.hooks_of(alone).register_pre_hook(lambda args: None)
    comms.hooks_of(alone).register_post_hook(lambda args: None)
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    gone = weakref.ref(tensor), weakref.ref(work)
    del tensor, work
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_a_hook_may_call_for_an_operation_of_its_own(bus, attachment, alone):
    heard, part = Heard(bus, "collective.*"), dist.new_group([0])
    comms.hooks_of(alone).register_pre_hook(lambda args: dist.barrier(group=part))
    dist.all_reduce(torch.ones(1))
    assert sorted(event["op"] for event in heard.on("collective.completed")) == ["all_reduce", "barrier"]
    assert not heard.on("collective.failed")


@pytest.mark.parametrize("kind", ["pre", "post"])
def test_a_hook_may_call_for_an_operation_of_its_own_group(bus, attachment, alone, eventually, kind):
    import torch.distributed._functional_collectives as functional

    heard, inside = Heard(bus, "collective.*"), []

    def barrier_within(args):
        if not inside:
            inside.append(args.name)
            dist.barrier()
            inside.pop()

    handle = getattr(comms.hooks_of(alone), f"register_{kind}_hook")(barrier_within)
    dist.all_reduce(torch.ones(1))
    assert handle.remove() == "done"
    assert sorted(event["op"] for event in heard.on("collective.completed")) == ["all_reduce", "barrier"]
    assert not attachment.report()["torch.distributed"].errors
    functional.all_reduce(torch.ones(3), "sum", alone).sum().item()  # by C++: no number is taken for a method's
    assert eventually(lambda: len(heard.on("collective.issued")) == 3)
    assert heard.on("collective.issued")[-1]["correlation"] == 3


def test_after_detach_a_group_that_lives_on_holds_nothing_of_ours(alone):
    import weakref

    import ringmain

    with ringmain.Bus("left") as bus, ringmain.torch.attach(bus, **OTHERS) as attached:
        dist.all_reduce(torch.ones(1))
        gone = weakref.ref(attached), weakref.ref(bus)
    del attached, bus
    gc.collect()
    assert [ref() for ref in gone] == [None, None]
    dist.all_reduce(torch.ones(1))


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_in_a_pre_hook_comes_out_as_it_is_and_all_goes_on(bus, group, raised):
    hooks, tensor, heard, after = comms.hooks_of(group), torch.ones(3), Heard(bus, "collective.failed"), []

    def end(args):
        if raised is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)  # as from the terminal: Python raises it where it is
        raise raised("enough")

    guard = hooks.register_pre_hook(end)
    hooks.register_post_hook(lambda args: after.append(args.outcome))
    number = group._get_sequence_number_for_group()
    with pytest.raises(raised) as came:
        dist.all_reduce(tensor, group=group)
    assert type(came.value) is raised and group._get_sequence_number_for_group() == number
    assert [event["how"] for event in heard.on("collective.failed")] == ["vetoed"] and after == ["refused"]
    guard.remove()
    dist.all_reduce(tensor, group=group)
    assert group._get_sequence_number_for_group() == number + 1 and after == ["refused", "issued"]
