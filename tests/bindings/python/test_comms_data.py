"""Does the loopback move the data, against a reference that knows nothing of it? And does it say what is wrong?"""

import threading

import numpy as np
import pytest
import ringmain
from ringmain import comms

try:
    import torch
except ImportError:
    torch = None

SIZES = (1, 2, 3, 5)
FOLDS = {comms.ReduceOp.SUM: np.add, comms.ReduceOp.PRODUCT: np.multiply, comms.ReduceOp.MIN: np.minimum, comms.ReduceOp.MAX: np.maximum,
         comms.ReduceOp.BAND: np.bitwise_and, comms.ReduceOp.BOR: np.bitwise_or, comms.ReduceOp.BXOR: np.bitwise_xor}


def values(rank, part=0, elements=6):
    return np.random.default_rng([rank, part]).integers(1, 50, elements)


def fold(op, size, part=0):
    return FOLDS[op].reduce([values(rank, part) for rank in range(size)])


def on_ranks(bus, size, program):
    def rank():
        comm = comms.new_comm("loopback", name="data", bus=bus)
        program(comm, comm.get_rank(), comm.get_size())
        comm.finalize()

    comms.run_ranks(size, rank)


def kinds():
    yield "numpy", lambda array: array.copy(), np.asarray
    yield "list", lambda array: array.tolist(), np.asarray
    yield "buffer", lambda array: memoryview(bytearray(array.astype(np.int64).tobytes())).cast("q"), np.asarray
    if torch is not None:
        yield "torch", lambda array: torch.from_numpy(array.copy()), lambda tensor: tensor.numpy()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op", FOLDS)
def test_reductions_are_those_of_numpy(bus, size, op):
    def program(comm, rank, size):
        mine = values(rank)
        comm.all_reduce(mine, op)
        assert (mine == fold(op, size)).all()
        mine = values(rank)
        comm.reduce(mine, size - 1, op)
        assert (mine == (fold(op, size) if rank == size - 1 else values(rank))).all()
        part = np.zeros(6, int)
        comm.reduce_scatter(part, [values(rank, other) for other in range(size)], op)
        assert (part == fold(op, size, rank)).all()
        comm.reduce_scatter_v(part, [values(rank, other) for other in range(size)], op, async_op=True).wait()
        assert (part == fold(op, size, rank)).all()
        part = np.zeros(6, int)
        comm.reduce_scatter_single(part, np.concatenate([values(rank, other) for other in range(size)]), op)
        assert (part == fold(op, size, rank)).all()

    on_ranks(bus, size, program)


def test_the_average_and_a_factor(bus):
    def program(comm, rank, size):
        mine = np.full(3, float(rank))
        comm.all_reduce(mine, comms.ReduceOp.AVG)
        assert mine.tolist() == [1.0] * 3
        mine = np.full(3, 1.0)
        comm.all_reduce(mine, comms.ReduceOp.PREMUL_SUM(rank + 1))
        assert mine.tolist() == [6.0] * 3

    on_ranks(bus, 3, program)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "made", "read"), list(kinds()), ids=lambda what: what if isinstance(what, str) else "")
def test_what_moves_arrives_in_each_kind_of_tensor(bus, size, kind, made, read):
    def program(comm, rank, size):
        everybody = [values(other) for other in range(size)]
        mine, root = made(values(rank)), size - 1
        sent = made(values(rank))
        comm.broadcast(sent, root)
        assert (read(sent) == values(root)).all()
        for gather in (comm.all_gather, comm.all_gather_v):
            got = [made(np.zeros(6, int)) for _ in range(size)]
            gather(got, mine)
            assert [(read(one) == of).all() for one, of in zip(got, everybody)] == [True] * size
        whole = made(np.zeros(6 * size, int))
        comm.all_gather_single(whole, mine)
        assert (read(whole) == np.concatenate(everybody)).all()
        got = [made(np.zeros(6, int)) for _ in range(size)]
        comm.gather(got if rank == root else [], mine, root)
        assert rank != root or all((read(one) == of).all() for one, of in zip(got, everybody))
        whole = made(np.zeros(6 * size, int))
        comm.gather_single(whole if rank == root else None, mine, root)
        assert rank != root or (read(whole) == np.concatenate(everybody)).all()
        one = made(np.zeros(6, int))
        comm.scatter(one, [made(values(root, other)) for other in range(size)] if rank == root else [], root)
        assert (read(one) == values(root, rank)).all()
        got = [made(np.zeros(6, int)) for _ in range(size)]
        comm.all_to_all(got, [made(values(rank, other)) for other in range(size)])
        assert all((read(one) == values(other, rank)).all() for other, one in enumerate(got))
        whole = made(np.zeros(6 * size, int))
        comm.all_to_all_single(whole, made(np.concatenate([values(rank, other) for other in range(size)])))
        assert (read(whole) == np.concatenate([values(other, rank) for other in range(size)])).all()
        right, left = (rank + 1) % size, (rank - 1) % size
        got = made(np.zeros(6, int))
        work = comm.recv(got, left, async_op=True)
        comm.send(mine, right)
        work.wait()
        assert (read(got) == values(left)).all()
        comm.barrier(async_op=True).wait()

    on_ranks(bus, size, program)


@pytest.mark.parametrize("size", SIZES)
def test_rows_go_where_split_sizes_say(bus, size):
    def rows(rank, other):
        return np.full((rank + other, 2), 10 * rank + other)

    def program(comm, rank, size):
        to, fro = [rank + other for other in range(size)], [other + rank for other in range(size)]
        got = np.zeros((sum(fro), 2), int)
        comm.all_to_all_v_single(got, np.concatenate([rows(rank, other) for other in range(size)]), fro, to)
        assert (got == np.concatenate([rows(other, rank) for other in range(size)])).all()

    on_ranks(bus, size, program)


def test_a_tensor_may_be_in_and_out(bus):
    def program(comm, rank, size):
        all_of_them = [np.full(2, rank * 10 + other) for other in range(size)]
        comm.all_to_all(all_of_them, all_of_them)
        assert [one[0] for one in all_of_them] == [other * 10 + rank for other in range(size)]

    on_ranks(bus, 4, program)


def test_parts_of_a_split_are_groups_of_their_own(bus):
    def program(comm, rank, size):
        mine = [1, 3] if rank % 2 else [4, 2, 0]  # in any order
        part = comm.split(mine, f"part {rank % 2}")
        assert (part.get_rank(), part.get_size(), part.get_name()) == (mine.index(rank), len(mine), f"part {rank % 2}")
        sent = [rank]
        part.broadcast(sent, 0)
        assert sent == [mine[0]]
        part.finalize()

    on_ranks(bus, 5, program)


# --- what is wrong ---


def failing(bus, size, program):
    with pytest.raises(Exception) as told:
        on_ranks(bus, size, program)
    return str(told.value)


def test_ranks_that_call_for_different_operations_are_told_which(bus):
    def program(comm, rank, size):
        comm.barrier() if rank == 0 else comm.all_reduce([1.0])

    assert failing(bus, 2, program) == "ranks called for different operations as number 1 of their group: rank 0 barrier, rank 1 all_reduce"


@pytest.mark.parametrize(("program", "words"), [
    (lambda comm, rank, size: comm.broadcast([1], rank), "broadcast: ranks name different roots (0, 1)"),
    (lambda comm, rank, size: comm.all_reduce([1.0] * (rank + 1)), "ranks reduce tensors of 1 and of 2 elements; all must have one shape"),
    (lambda comm, rank, size: comm.all_gather([[0]], [1]), "all_gather: 1 are given for 2 ranks; give one for each"),
    (lambda comm, rank, size: comm.reduce_scatter_single([0], [1, 2, 3]), "reduce_scatter_single: 3 elements cannot be shared by 2 ranks; give a multiple"),
    (lambda comm, rank, size: comm.all_gather_single([0], [1]), "a tensor of 1 elements cannot take 2; give one of that size"),
    (lambda comm, rank, size: comm.split([rank] if rank else [0, 1], "x"), "split: rank 0 names the ranks [0, 1], and rank 1 does not"),
    (lambda comm, rank, size: comm.split([1 - rank], "x"), "is not in the ranks"),
    (lambda comm, rank, size: comm.send([1], 2), "dst is 2, and group 'data' has ranks 0 to 1"),
    (lambda comm, rank, size: comm.all_to_all_v_single([0] * 2, [1, 2], [2, 0], [1, 1]), "waits for [2, 0] rows, and gets [1, 1]"),
    (lambda comm, rank, size: comm.all_reduce([1], "sum"), "a reduction is ReduceOp.SUM, .AVG"),
    (lambda comm, rank, size: comm.all_reduce(object()), "all_reduce: a object is no tensor"),
    (lambda comm, rank, size: comm.all_gather(np.zeros(2), [1]), "tensor_list is a ndarray; give a list of tensors"),
])
def test_what_cannot_be_is_refused_in_a_sentence(bus, program, words):
    assert words in failing(bus, 2, program)


def test_a_rank_that_raises_aborts_the_others_and_is_what_the_caller_gets(bus):
    others = []

    def program(comm, rank, size):
        part = comm.split([0, 1, 2], "part")
        if rank == 1:
            raise KeyError("mine")
        try:
            part.barrier()
        except comms.CommunicatorAborted as aborted:
            others.append(str(aborted))
            raise

    with pytest.raises(KeyError, match="mine"):
        on_ranks(bus, 3, program)
    assert others == ["rank 1 has raised KeyError"] * 2


def test_outside_of_run_ranks_there_is_one_rank_and_several_groups_of_one_name(bus):
    first, second = comms.new_comm("loopback", bus=bus), comms.new_comm("loopback", bus=bus)
    assert [comms.get_rank(first), comms.get_size(first), first.get_name(), first.get_backend()] == [0, 1, "loopback", "loopback"]
    first.barrier()
    second.barrier()
    comms.finalize(first)
    second.barrier()
    comms.finalize(second)


def test_backends_that_are_not_there_and_wrong_arguments_are_refused(bus):
    with pytest.raises(ValueError, match="'smoke'"):
        comms.new_comm("smoke", bus=bus)
    with pytest.raises(TypeError, match="bus is 7; give a ringmain.Bus"):
        comms.new_comm("loopback", bus=7)
    with pytest.raises(TypeError, match="timeout is 'soon'"):
        comms.new_comm("loopback", bus=bus, timeout="soon")
    for made_elsewhere in (comms.Comm, comms.Work, comms.RemovableHandle, comms.BatchSendRecv):
        with pytest.raises(TypeError, match="by comm|by ringmain|what"):
            made_elsewhere()


def test_many_threads_groups_and_operations_at_once_lose_nothing(bus, long):
    done = []
    bus.subscribe("collective.completed", lambda batch: done.extend(batch.array["op_id"].tolist()))
    lock, ids = threading.Lock(), []

    def program():
        comm = comms.new_comm("loopback", name="many", bus=bus)
        works = [comm.all_reduce(np.full(3, n), async_op=True) for n in range(200)]
        for work in works:
            work.wait()
        with lock:
            ids.extend(work._operation.id for work in works)
        comm.finalize()

    comms.run_ranks(4, program)
    assert bus.flush(long)
    assert len(set(ids)) == 800 and sorted(done) == sorted(ids)


# --- the surface ---


def test_everything_public_has_a_docstring_and_is_shown_in_words():
    lacking = [name for name in comms.__all__ if not (getattr(comms, name).__doc__ or "").strip()]
    assert lacking == []
    with ringmain.Bus("shown") as bus:
        comm = comms.new_comm("loopback", name="g", bus=bus)
        seen = []
        handle = comm.register_pre_hook(seen.append, name="mine")
        comm.register_post_hook(seen.append)
        comm.register_completion_hook(seen.append)
        work = comm.barrier()
        shown = [repr(one) for one in (comm, handle, work, comm.batch_op_create(), comms.ReduceOp.SUM, comms.ReduceOp.PREMUL_SUM(2),
                                       comms.hooks_of("g", bus=bus), *seen)]
        assert shown[:7] == ["<communicator 'g', rank 0 of 1>", "<hook 'mine'>", "<barrier of group 'g', completed>",
                             "<batch of 0 for <communicator 'g', rank 0 of 1>>", "ReduceOp.SUM", "ReduceOp.PREMUL_SUM(2)",
                             "<hooks of group 'g', rank 0 of 1>"]
        words = [text.split(",")[0] for text in shown[7:]]
        assert sorted(words) == ["<after barrier", "<before barrier", "<end of barrier"]
        handle.remove()
        assert repr(handle) == "<hook 'mine', removed>"
