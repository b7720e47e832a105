"""Do hooks in Python do what torchcomms' own tests ask of its hooks, and what its documents' programs count on?"""

import json

import pytest
from ringmain import comms
from ringmain.comms import OpName, PostHookArgs, PreHookArgs, RemovableHandle

ONES = [1.0] * 4


@pytest.fixture
def comm(bus):
    made = comms.new_comm("loopback", name="main", bus=bus)
    yield made
    made._native.end()  # finalize() may be refused by a hook of the test


class Calls(list):
    """A hook that keeps what it was called with."""

    def __call__(self, args):
        self.append(args)

    @property
    def names(self):
        return [args.name for args in self]

    @property
    def ids(self):
        return [args.op_id for args in self]


def hooked(comm):
    before, after = Calls(), Calls()
    return before, after, comm.register_pre_hook(before), comm.register_post_hook(after)


# --- what torchcomms' tests ask, line by line ---


def test_one_all_reduce_is_one_pre_and_one_post(comm):
    before, after, _, _ = hooked(comm)
    comm.all_reduce(list(ONES), comms.ReduceOp.SUM, async_op=False)
    assert before.names == after.names == [OpName.all_reduce]


def test_of_three_operations_ids_increase_and_pre_and_post_have_the_same_in_call_order(comm):
    before, after, _, _ = hooked(comm)
    comm.all_reduce(list(ONES))
    comm.broadcast(list(ONES), 0)
    comm.barrier()
    assert before.ids == after.ids == sorted(set(before.ids)) and len(before.ids) == 3
    assert before.names == after.names == [OpName.all_reduce, OpName.broadcast, OpName.barrier]


def test_after_remove_neither_fires_again(comm):
    before, after, first, second = hooked(comm)
    comm.barrier()
    assert [first.remove(), second.remove()] == ["done", "done"]
    comm.barrier()
    assert len(before) == len(after) == 1


def test_two_pre_and_two_post_hooks_fire_once_each_for_each_operation(comm):
    all_of_them = [*hooked(comm)[:2], *hooked(comm)[:2]]
    comm.barrier()
    comm.barrier()
    assert [len(calls) for calls in all_of_them] == [2, 2, 2, 2]


def test_args_are_those_of_the_operation(comm):
    before, _, _, _ = hooked(comm)
    tensor = list(ONES)
    comm.all_reduce(tensor, comms.ReduceOp.MAX, async_op=True).wait()
    comm.broadcast(tensor, root=0, async_op=False)
    reduced, sent = before
    assert reduced.tensor is tensor and len(reduced.tensor) == 4 and reduced.async_op is True
    assert reduced.op == comms.ReduceOp.MAX and reduced.root is None and reduced.peer is None
    assert sent.root == 0 and sent.async_op is False and sent.op is None and sent.tensors == [tensor]


def test_a_batch_of_send_and_receive_is_one_pre_and_one_post_also_with_dropped_handles(comm):
    before, after = hooked(comm)[:2]  # both handles are dropped here
    got = [0.0]
    batch = comm.batch_op_create()
    batch.send([7.0], 0)
    batch.recv(got, 0)
    batch.issue(async_op=True).wait()
    assert got == [7.0]
    assert before.names == after.names == [OpName.batch_op_issue]
    assert before[0].num_ops == 2 and before[0].async_op is True and before.ids == after.ids


def test_a_recorder_has_the_members_of_a_batch(comm):
    recorder = comms.FlightRecorderHook(10, isolated=True)
    recorder.register_with_comm(comm)
    batch = comm.batch_op_create()
    batch.recv([0.0, 0.0], 0)
    batch.send([7.0, 8.0], 0)
    batch.issue()
    entries = json.loads(recorder.dump_json())["entries"]
    assert [entry["profiling_name"].split(":")[1].split(" ")[0] for entry in entries] == ["recv", "send", "coalesced"]
    assert [(entry["input_sizes"], entry["output_sizes"]) for entry in entries] == [([], [[2]]), ([[2]], []), ([], [])]
    assert {entry["state"] for entry in entries} == {"completed"}
    with pytest.raises(TypeError):
        batch.send(object(), 0)
        batch.issue()


def test_abort_hooks_run_on_each_trigger_and_not_after_remove(comm):
    calls = []
    handle = comm.register_abort_hook(lambda: calls.append(1))
    assert calls == []
    assert [comm.run_abort_hooks("one").hooks, comm.run_abort_hooks("two").hooks] == [1, 1]
    assert calls == [1, 1]
    assert handle.remove() == "done"
    assert comm.run_abort_hooks("three").hooks == 0 and calls == [1, 1]


def test_three_abort_hooks_all_run_and_one_that_raises_stops_no_other(comm, caplog):
    calls = []

    def broken():
        raise RuntimeError("out of cheese")

    comm.register_abort_hook(lambda: calls.append("first"))
    handle = comm.register_abort_hook(broken)
    comm.register_abort_hook(lambda args: calls.append(args.reason))
    assert comm.run_abort_hooks("because").hooks == 3
    assert sorted(calls) == ["because", "first"] and handle.raised == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"] and "out of cheese" in caplog.text


def test_abort_flips_is_aborted_where_it_is_supported_and_is_nothing_elsewhere(comm, bus):
    assert comm.is_abort_supported() and not comm.is_aborted()
    assert comm.abort("enough").how == "done" and comm.is_aborted()
    native = comms.hooks_of("main", bus=bus)._native  # of the same group, with a backend that has no abort
    other = type(native).make(bus._native, comms._comm._native.CommunicatorOptions("bare", 0, 1))
    assert not other.supports_abort and other.abort("enough")["how"] == "unsupported" and not other.aborted


def test_a_handle_is_a_removable_handle_and_may_be_kept_or_dropped(comm):
    kept, dropped = Calls(), Calls()
    handle = comm.register_pre_hook(kept)
    assert isinstance(handle, RemovableHandle) and isinstance(comm.register_pre_hook(dropped), RemovableHandle)
    comm.barrier()
    assert len(kept) == len(dropped) == 1


def test_an_abort_hook_registers_and_unregisters(comm):
    handle = comm.register_abort_hook(lambda: None)
    assert isinstance(handle, RemovableHandle) and handle.attached
    assert handle.remove() == "done" and not handle.attached


# --- programs as the documents have them ---


def test_a_program_with_one_argument_hooks_runs_as_it_is_written(capsys, bus):
    comm = comms.new_comm("loopback", "cpu", name="documents", bus=bus)

    def my_pre_hook(args: PreHookArgs) -> None:
        print(f"before {args.name} {args.op_id - first}")

    def my_post_hook(args: PostHookArgs) -> None:
        print(f"after {args.name} {args.op_id - first}")

    def my_abort_hook() -> None:
        print("about to abort")

    first = 0
    handles = [comm.register_pre_hook(my_pre_hook), comm.register_post_hook(my_post_hook), comm.register_abort_hook(my_abort_hook)]
    seen = []
    counting = comm.register_pre_hook(lambda args: seen.append(args.op_id))
    comm.barrier(async_op=False)
    first = seen[0] + 1
    capsys.readouterr()
    tensor = [1.0] * 10
    comm.all_reduce(tensor, comms.ReduceOp.SUM, async_op=False)
    for handle in [*handles, counting]:
        handle.remove()
    comm.barrier(async_op=False)
    comm.finalize()
    assert capsys.readouterr().out == "before OpName.all_reduce 0\nafter OpName.all_reduce 0\n"


def test_a_program_with_the_three_argument_hooks_of_torchcomms_runs(comm):
    before, after = [], []

    def pre(name: OpName, op_id: int, args: PreHookArgs) -> None:
        before.append((name, op_id, getattr(args, "root", None)))

    def post(op_id: int, args: PostHookArgs) -> None:
        after.append(op_id)

    comm.register_pre_hook(pre)
    comm.register_post_hook(post)
    comm.broadcast([1.0], root=0, async_op=False)
    assert before == [(OpName.broadcast, after[0], 0)] and len(after) == 1


def test_in_torchcomms_shape_a_splits_name_is_the_new_groups(comm):
    seen = []
    comm.register_pre_hook(lambda name, op_id, args: seen.append((name, args.name, args.ranks)))
    comm.split([0], "mine").finalize()
    assert seen[0] == (OpName.split, "mine", [0])


def test_a_program_for_c10ds_hooks_runs(comm):
    seen = []
    comm.register_pre_hook(7_000_001, lambda a: seen.append((a.name.name, a.async_op, a.input_tensors, a.output_tensors, a.root)))
    comm.register_post_hook(7_000_001, lambda a: seen.append((a.name.name, a.async_op, a.work.is_completed())))
    tensor, gathered = [1.0], [[0.0]]
    comm.all_reduce(tensor)
    comm.all_gather(gathered, tensor)
    comm.broadcast(tensor, 0)
    assert seen == [("ALLREDUCE", False, [[1.0]], [], -1), ("ALLREDUCE", False, True), ("ALLGATHER", False, [[1.0]], [[1.0]], -1),
                    ("ALLGATHER", False, True), ("BROADCAST", False, [[1.0]], [], 0), ("BROADCAST", False, True)]
    assert [comm.unregister_pre_hook(7_000_001), comm.unregister_post_hook(7_000_001)] == ["done", "done"]
    assert comm.unregister_pre_hook(7_000_001) == "was_not_attached"
    comm.barrier()
    assert len(seen) == 6


def test_the_same_id_replaces_the_hook_as_in_c10d(comm):
    first, second = Calls(), Calls()
    comm.register_pre_hook(3, first)
    comm.register_pre_hook(3, second)
    comm.barrier()
    assert (len(first), len(second)) == (0, 1)


def test_each_of_torchcomms_22_names_is_there():
    assert len(OpName) == 22 and OpName.batch_op_issue == "batch_op_issue" and f"{OpName.split}" == "OpName.split"


def test_a_style_that_is_said_wins_and_a_callback_that_fits_none_is_refused(comm):
    seen = []
    comm.register_post_hook(lambda *words: seen.append(words), style="torchcomms")
    comm.register_pre_hook(lambda *words: seen.append(words))
    comm.barrier()
    assert [len(words) for words in seen] == [1, 2]
    for register, wrong in ((comm.register_pre_hook, lambda one, two: None), (comm.register_pre_hook, lambda: None),
                            (comm.register_post_hook, lambda a, b, c, d: None), (comm.register_abort_hook, lambda a, b: None),
                            (comm.register_completion_hook, lambda a, b: None)):
        with pytest.raises(TypeError, match=r"hook is called as cb\("):
            register(wrong)
    with pytest.raises(TypeError, match="needs more= as well"):
        comm.register_pre_hook(lambda args, *, more: None)
    with pytest.raises(ValueError, match="style is 'c20d'"):
        comm.register_pre_hook(print, style="c20d")
