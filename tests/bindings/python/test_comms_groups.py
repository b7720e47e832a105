"""Do parts, ends, aborts, forks and exits of communicators do what docs/python.md says?"""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import ringmain
from ringmain import _native, comms


@pytest.fixture
def comm(bus):
    made = comms.new_comm("loopback", name="main", bus=bus)
    yield made
    made._native.end()  # finalize() may be refused by a hook of the test


def heard_on(bus, channel):
    kept = []
    bus.subscribe(channel, lambda batch: kept.extend(record._asdict() for record in batch))
    return kept


# --- groups ---


def test_parts_inherit_hooks_and_one_removal_takes_them_away_from_both(bus, comm, long):
    groups, seen = heard_on(bus, "collective.group"), []
    handle = comm.register_pre_hook(lambda args: seen.append((args.group, args.name)))
    part = comm.split([0], "part")
    part.barrier()
    assert handle.remove() == "done"
    part.barrier()
    assert seen == [("main", "split"), ("part", "barrier")]
    part.finalize()
    assert bus.flush(long)
    assert [(event["change"], event["group"], event["parent"], event["hooks"]) for event in groups if event["change"] == "split"] == [
        ("split", "part", "main", 1)]


def test_a_split_that_gives_this_rank_nothing_is_paired(bus, long):
    groups = heard_on(bus, "collective.group")
    outcomes = []

    def program():
        comm = comms.new_comm("loopback", name="whole", bus=bus)
        before, after = [], []
        comm.register_pre_hook(before.append)
        comm.register_post_hook(after.append)
        part = comm.split([0] if comm.get_rank() == 0 else [], "one")
        outcomes.append((comm.get_rank(), len(before), [args.new_comm for args in after] == [part], part is None))
        comm.finalize()

    comms.run_ranks(2, program)
    assert sorted(outcomes) == [(0, 1, True, False), (1, 1, True, True)]
    assert bus.flush(long)
    assert sorted(event["group"] for event in groups if event["change"] == "split") == ["", "one"]


def test_finalize_is_hooked_and_afterwards_everything_is_refused_in_a_sentence(bus):
    comm = comms.new_comm("loopback", name="gone", bus=bus)
    seen = []
    comm.register_pre_hook(lambda args: seen.append(args.name))
    comm.register_post_hook(lambda args: seen.append(args.name))
    comm.finalize()
    comm.finalize()
    assert seen == ["finalize", "finalize"]
    with pytest.raises(RuntimeError, match="barrier of group 'gone': its communicator has ended; make another by new_comm()"):
        comm.barrier()
    for register in (comm.register_pre_hook, comm.register_post_hook, comm.register_completion_hook):
        with pytest.raises(ValueError, match="has ended"):
            register(lambda args: None)
    with pytest.raises(ValueError, match="has ended"):
        comm.register_completion_hook(lambda args: None, on_dispatcher=True)
    assert comm.abort().how == "ended" and "ended" in repr(comm)


def test_hooks_of_a_group_that_somebody_else_made_are_those_of_its_communicator(bus):
    native = _native.Communicator.make(bus._native, _native.CommunicatorOptions("foreign", 1, 2))
    seen = []
    handle = comms.hooks_of("foreign", bus=bus).register_pre_hook(lambda args: seen.append((args.name, args.rank, args.tensors)))
    with native.issue("exclusive_scan", [np.ones(2)]) as issuing:
        issuing.operation.completed()
    assert [(name, rank) for name, rank, _ in seen] == [("exclusive_scan", 1)] and seen[0][2][0].tolist() == [1.0, 1.0]
    assert handle.remove() == "done"
    with pytest.raises(LookupError, match=r"knows no communicator 'nobody', or it has ended; make it by new_comm\(\)"):
        comms.hooks_of("nobody", bus=bus)
    with pytest.raises(TypeError, match="give a torch.distributed.ProcessGroup"):
        comms.hooks_of(7, bus=bus)


# --- aborts ---


def test_an_abort_leaves_a_hook_that_is_stuck_names_it_and_fails_what_is_open(bus, caplog):
    go_on, left = threading.Event(), threading.Event()

    def stuck():
        go_on.wait()
        left.set()

    def program():
        comm = comms.new_comm("loopback", name="stuck", bus=bus)
        if comm.get_rank() == 1:
            meet.wait()
            return None
        others, ends = [], []
        comm.register_abort_hook(stuck, name="dump")
        comm.register_abort_hook(lambda args: others.append((args.reason, args.asked_by)))
        comm.register_completion_hook(lambda end: ends.append(end.how))
        work = comm.all_reduce([1.0], async_op=True)  # the other rank never comes
        try:
            told = comm.abort("a rank is missing", within=0.2)
            with pytest.raises(comms.CommunicatorAborted, match="a rank is missing"):
                work.wait()
            with pytest.raises(comms.CommunicatorAborted):
                comm.barrier()
        finally:
            meet.set()
        return told, others, ends

    meet = threading.Event()
    try:
        told, others, ends = comms.run_ranks(2, program)[0]
    finally:
        go_on.set()
        left.wait()
    assert (told.how, told.hooks, told.operations, told.stuck) == ("done", 2, 1, ["dump"])
    assert others == [("a rank is missing", "application")] and ends == ["aborted"]


def test_an_operation_that_takes_too_long_is_said_so(bus):
    ends = []
    over = threading.Event()

    def program():
        comm = comms.new_comm("loopback", name="slow", timeout=0.05, bus=bus)
        if comm.get_rank() == 0:
            comm.register_completion_hook(lambda end: ends.append(end.how))
            with pytest.raises(TimeoutError, match="barrier of group 'slow': not all ranks have come within 0.05 s"):
                comm.barrier()
            over.set()
        assert over.wait(60)
        comm.finalize()

    comms.run_ranks(2, program)
    assert ends == ["timed_out"]


# --- the process ---

PRELUDE = "import os, threading\nimport ringmain\nfrom ringmain import comms\n"


def run(script, code=0):
    ended = subprocess.run([sys.executable, "-c", PRELUDE + textwrap.dedent(script)], capture_output=True, text=True, check=False,
                           timeout=120, env=dict(os.environ))
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "nanobind" not in ended.stderr and "Fatal" not in ended.stderr, ended.stderr
    return ended.stdout


def test_an_exit_with_hooks_that_know_their_communicator_lets_all_go():
    assert run("""
        comm = comms.new_comm("loopback", name="main")
        comm.register_pre_hook(lambda args: comm.get_rank() == 0)
        comm.register_completion_hook(lambda end: comm, on_dispatcher=True)
        comm.register_abort_hook(lambda: comm)
        comm.all_reduce([1.0])
        print("done")
        """) == "done\n"


@pytest.mark.parametrize("body", ["threading.Event().wait()", "while True: pass"])
def test_an_exit_with_a_stuck_abort_hook_keeps_its_status(body):
    assert run(f"""
        import sys
        comm = comms.new_comm("loopback", name="main")
        def stuck():
            {body}
        comm.register_abort_hook(stuck)
        print(comm.abort("enough", within=0.1).stuck, flush=True)
        sys.exit(3)
        """, code=3) == "['stuck']\n"


def test_in_a_forked_child_the_parents_communicator_is_silent_and_a_new_one_works():
    assert run("""
        comm = comms.new_comm("loopback", name="main")
        seen = []
        handle = comm.register_pre_hook(lambda args: seen.append(args.name))
        child = os.fork()
        if child == 0:
            comm.barrier()
            told = handle.remove()
            try:
                comm.register_pre_hook(print)
            except ValueError as refused:
                print(len(seen), told, "forked" in str(refused), flush=True)
            with ringmain.Bus() as bus:
                mine = comms.new_comm("loopback", name="mine", bus=bus)
                mine.register_pre_hook(lambda args: seen.append(args.name))
                mine.barrier()
                mine.finalize()
            print(seen == ["barrier", "finalize"], flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        comm.barrier()
        print(len(seen))
        """) == "0 was_not_attached True\nTrue\n1\n"


# --- the extension module's own rules ---


def test_an_issuing_ends_in_its_thread_the_last_begun_first(bus):
    native = _native.Communicator.make(bus._native, _native.CommunicatorOptions("order", 0, 1))
    outer = native.issue("barrier")
    inner = native.issue("barrier")
    with pytest.raises(RuntimeError, match="ends in the thread that began it, the last begun first"):
        outer.returned()
    wrong = []

    def elsewhere():
        try:
            inner.returned()
        except RuntimeError as error:
            wrong.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(wrong) == 1
    inner.returned()
    inner.returned()
    outer.returned()


def test_words_that_the_extension_module_does_not_know_are_refused_in_ours(bus):
    make, options = _native.Communicator.make, _native.CommunicatorOptions
    native = make(bus._native, options("words", 0, 1))
    for call, words in ((lambda: make(bus._native, options("", 0, 1)), "needs the name"),
                        (lambda: make(bus._native, options("x", 2, 1)), "rank is 2, and must be from 0 to 0"),
                        (lambda: native.issue("all_reduce"), "all_reduce has one tensor as its input, and 0 were given"),
                        (lambda: native.issue("all_reduce", [[1]], reduce="most"), "'most' is no reduction"),
                        (lambda: native.hook("during", print), "'during' is no kind of hook"),
                        (lambda: native.issue("barrier").operation.failed("x", how="sadly"), "how is 'sadly'")):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="all_reduce: a object is no tensor"):
        native.issue("all_reduce", [object()])


def test_tensors_are_described_for_who_hears_shapes(bus, long):
    shapes, issued = heard_on(bus, "collective.shapes"), heard_on(bus, "collective.issued")
    native = _native.Communicator.make(bus._native, _native.CommunicatorOptions("shapes", 0, 1))
    with native.issue("all_gather", [np.ones((3, 4), np.int64)], [np.zeros(5, np.float32), bytearray(3), [1, 2]]):
        pass
    assert bus.flush(long)
    assert (shapes[0]["input"], shapes[0]["output"]) == ("int64[3,4]", "float32[5] B[3] object[2]")
    assert (issued[0]["bytes"], issued[0]["in_elements"], issued[0]["dtype"]) == (96, 12, "int64")


def test_the_bus_may_end_before_the_communicator():
    bus = ringmain.Bus("brief")
    comm = comms.new_comm("loopback", name="outlives", bus=bus)
    handle = comm.register_pre_hook(lambda args: None)
    bus.close()
    comm.all_reduce([1.0])
    handle.remove()
    comm.finalize()
