"""Do hooks come and go, refuse and raise without harm to anybody else?"""

import gc
import threading
import weakref

import pytest
from ringmain import comms


@pytest.fixture
def comm(bus):
    made = comms.new_comm("loopback", name="main", bus=bus)
    yield made
    made._native.end()  # finalize() may be refused by a hook of the test


def heard_on(bus, channel):
    kept = []
    bus.subscribe(channel, lambda batch: kept.extend(record._asdict() for record in batch))
    return kept


# --- vetoes ---


@pytest.mark.parametrize(("answer", "reason"), [(False, "vetoed by guard"), ("no more", "no more")])
def test_a_refused_operation_raises_leaves_a_paired_record_and_does_not_reach_the_backend(bus, comm, long, answer, reason):
    issued, failed, after = heard_on(bus, "collective.issued"), heard_on(bus, "collective.failed"), []
    comm.register_pre_hook(lambda args: answer, name="guard")
    comm.register_post_hook(after.append)
    tensor = [1.0]
    with pytest.raises(comms.OperationVetoed, match=reason) as told:
        comm.all_reduce(tensor, comms.ReduceOp.PREMUL_SUM(3.0))
    assert told.value.reason == reason and tensor == [1.0]
    assert [(args.outcome, args.reason, args.work) for args in after] == [("refused", reason, None)]
    assert bus.flush(long)
    assert [event["op_id"] for event in issued] == [event["op_id"] for event in failed] == [after[0].op_id]
    assert (failed[0]["how"], failed[0]["reason"]) == ("vetoed", reason)


def test_an_exception_of_a_pre_hook_vetoes_and_reaches_the_caller_as_it_is(comm):
    class NotANumber(Exception):
        pass

    raised = NotANumber("nan in gradients")

    def check(args):
        raise raised

    handle = comm.register_pre_hook(check)
    with pytest.raises(NotANumber) as told:
        comm.all_reduce([1.0])
    assert told.value is raised and "which refused all_reduce of group 'main'" in raised.__notes__[0]
    assert handle.raised == 1
    handle.remove()
    comm.all_reduce([1.0])


def test_a_refusal_ends_it_and_other_answers_do_not(comm):
    asked = []

    def hook(name, answer):
        def ask(args):
            asked.append(name)
            return answer

        return ask

    comm.register_pre_hook(hook("low", "never heard"), priority=-1)
    handle = comm.register_pre_hook(hook("middle", "no"))
    comm.register_pre_hook(hook("high", True), priority=1)
    with pytest.raises(comms.OperationVetoed, match="no$"):
        comm.barrier()
    assert asked == ["high", "middle"]
    handle.remove()
    wrong = comm.register_pre_hook(lambda args: 7, priority=2)
    with pytest.raises(TypeError, match="answers None or True"):
        comm.barrier()
    wrong.remove()


def test_an_exception_in_an_operation_inside_of_a_hook_is_that_ones_callers(bus, comm):
    """And the outer operation goes on."""
    inner = comms.new_comm("loopback", name="inner", bus=bus)
    inner.register_pre_hook(lambda args: (_ for _ in ()).throw(KeyError("inner")))
    caught = []

    def outer(args):
        try:
            inner.barrier()
        except KeyError as error:
            caught.append(error)

    comm.register_pre_hook(outer)
    comm.barrier()
    assert len(caught) == 1


# --- after the call, and at the end ---


def test_a_throwing_post_hook_costs_nobody_the_result_and_is_logged_once(comm, caplog):
    def broken(args):
        raise RuntimeError("out of cheese")

    after = []
    handle = comm.register_post_hook(broken)
    comm.register_post_hook(after.append)
    tensor = [2.0]
    assert comm.all_reduce(tensor).is_completed() and comm.all_reduce(tensor).is_completed()
    assert len(after) == 2 and handle.raised == 2 and caplog.text.count("out of cheese") >= 1
    assert len([record for record in caplog.records if record.name == "ringmain"]) == 1


def test_a_backend_that_does_not_take_it_is_paired_and_its_words_are_the_reason(bus, comm, long):
    failed, after = heard_on(bus, "collective.failed"), []
    comm.register_post_hook(after.append)
    with pytest.raises(NotImplementedError):
        comm.new_window()
    assert [(args.name, args.outcome) for args in after] == [("new_window", "threw")]
    assert bus.flush(long)
    assert [event["how"] for event in failed] == ["error"] and "has no windows" in failed[0]["reason"]


def test_completion_hooks_are_called_once_for_each_end_whoever_says_it(bus, comm):
    ends = []
    comm.register_completion_hook(ends.append)
    work = comm.all_reduce([1.0], async_op=True)
    assert not work._operation.completed() and not work._operation.failed("late")  # they come too late
    comm.register_pre_hook(lambda args: False)
    with pytest.raises(comms.OperationVetoed):
        comm.barrier()
    assert [(end.name, end.how) for end in ends] == [("all_reduce", "completed"), ("barrier", "vetoed")]
    assert ends[0].completed and ends[0].reason == "" and ends[0].group == "main" and ends[0].duration_ns >= 0


def test_an_end_has_the_op_id_of_the_call_and_the_word_of_events(comm):
    before, ends = [], []
    comm.register_pre_hook(before.append)
    comm.register_completion_hook(ends.append)
    comm.all_gather_single([0], [1])
    assert (before[0].name, ends[0].name) == ("all_gather_single", "all_gather") and before[0].op_id == ends[0].op_id


def test_an_asynchronous_operation_is_completed_by_the_thread_of_the_rank_that_comes_last(bus):
    """Which is a foreign one for the other: its hook takes the GIL there."""
    first_called, threads = threading.Event(), {}

    def program():
        comm = comms.new_comm("loopback", name="late", bus=bus)
        rank = comm.get_rank()
        comm.register_completion_hook(lambda end: threads.setdefault(rank, threading.current_thread().name))
        if rank == 1:
            first_called.wait()
        work = comm.all_reduce([1.0], async_op=True)
        first_called.set()
        work.wait()
        comm.finalize()

    comms.run_ranks(2, program)
    assert threads == {0: "rank 1", 1: "rank 1"}


@pytest.mark.parametrize("on_dispatcher", [False, True])
def test_a_hook_on_the_dispatcher_is_called_in_its_thread_and_in_no_other(bus, comm, long, on_dispatcher):
    threads, after = set(), []
    comm.register_completion_hook(lambda end: threads.add((end.how, threading.current_thread().name)), on_dispatcher=on_dispatcher)
    handle = comm.register_post_hook(after.append, on_dispatcher=on_dispatcher)
    part = comm.split([0], "part")  # which inherits them
    part.barrier()
    comm.barrier()
    assert bus.flush(long)
    assert threads == {("completed", "test-dispatcher" if on_dispatcher else threading.current_thread().name)}
    assert {(args.group, args.name) for args in after} == {("main", "split"), ("main", "barrier"), ("part", "barrier")}
    assert handle.attached and handle.remove() == "done" and not handle.attached and handle.remove() == "was_not_attached"
    comm.barrier()
    assert bus.flush(long)
    assert len(after) == 3
    part.finalize()


def test_a_hook_on_the_dispatcher_that_raises_loses_no_other_event(bus, comm, long, caplog):
    seen = []

    def broken(end):
        seen.append(end.op_id)
        raise RuntimeError("out of cheese")

    handle = comm.register_completion_hook(broken, on_dispatcher=True)
    for _ in range(5):
        comm.barrier()
    assert bus.flush(long)
    assert len(seen) == 5 and handle.raised >= 1


# --- handles ---


def test_remove_may_be_called_again_and_after_the_communicators_end(bus):
    comm = comms.new_comm("loopback", name="short", bus=bus)
    first, second = comm.register_pre_hook(print), comm.register_post_hook(lambda args: None)
    assert [first.remove(), first.remove()] == ["done", "was_not_attached"]
    comm.finalize()
    del comm
    gc.collect()
    assert second.remove() in ("done", "was_not_attached") and second.remove() == "was_not_attached"


def test_what_a_removed_hook_held_is_let_go(comm):
    class Held:
        pass

    held = Held()
    gone = weakref.ref(held)
    handle = comm.register_pre_hook(lambda args, held=held: None)
    del held
    assert handle.remove() == "done"
    comm.register_pre_hook(lambda args: None).remove()  # whoever holds the GIL next drops it
    gc.collect()
    assert gone() is None


def test_a_hook_may_remove_itself_and_others_and_register_more(comm):
    told, seen = [], []

    def once(args):
        told.append(handle.remove())
        other.remove()
        comm.register_pre_hook(lambda args: seen.append("new"))

    handle = comm.register_pre_hook(once)
    other = comm.register_pre_hook(lambda args: seen.append("other"))
    comm.barrier()
    assert told == ["deferred"] and "new" not in seen
    comm.barrier()
    assert told == ["deferred"] and seen[-1] == "new" and not handle.attached
    assert seen.count("new") == 1


def test_an_abort_hook_may_remove_itself_and_abort_again(comm):
    told = []

    def hook(args):
        told.append(handle.remove())
        told.append(comm.abort("again").how)

    handle = comm.register_abort_hook(hook)
    ended = comm.abort("first", within=60.0)
    assert (ended.how, ended.stuck) == ("done", []) and told == ["deferred", "joined"]


def test_remove_waits_for_a_call_that_runs_without_the_gil_and_says_timeout(comm):
    inside, go_on = threading.Event(), threading.Event()

    def slow(args):
        inside.set()
        go_on.wait()

    handle = comm.register_pre_hook(slow)
    caller = threading.Thread(target=comm.barrier)
    caller.start()
    inside.wait()
    assert handle.remove(timeout=0.0) == "timeout" and not handle.attached
    waiting = []
    remover = threading.Thread(target=lambda: waiting.append(handle.remove()))
    remover.start()
    go_on.set()  # this thread has the GIL, so the remover does not hold it while it waits
    remover.join()
    caller.join()
    assert waiting == ["done"]


def test_hooks_come_and_go_from_other_threads_while_collectives_run(bus):
    stop, counted = threading.Event(), []

    def program():
        comm = comms.new_comm("loopback", name="busy", bus=bus)
        steady, coming = [], []

        def come_and_go():
            while not stop.is_set():
                handle = comm.register_pre_hook(coming.append)
                ends = comm.register_completion_hook(lambda end: None)
                assert handle.remove() == "done"
                coming.clear()
                ends.remove()
                assert coming == []

        comm.register_pre_hook(steady.append)
        comer = threading.Thread(target=come_and_go)
        comer.start()
        for n in range(300):
            tensor = [float(n)]
            comm.all_reduce(tensor)
            assert tensor == [2.0 * n]
        comm.barrier()
        stop.set()
        comer.join()
        counted.append(len(steady))
        comm.finalize()

    comms.run_ranks(2, program)
    assert counted == [301, 301]
