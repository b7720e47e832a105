"""Ranks of the loopback that are late, leave or do not agree: there is one outcome for all of them."""

import threading

import numpy as np
import pytest

from ringmain import Bus, comms


@pytest.fixture
def bus():
    with Bus() as made:
        yield made


def outcomes(size, program):
    """What each rank came to: "ok", or the error's type and words."""

    def one():
        try:
            program()
        except Exception as error:
            return type(error).__name__, str(error)
        return "ok", ""

    return comms.run_ranks(size, one)


def test_who_comes_after_a_time_out_fails_as_the_others_did_and_all_are_in_step_afterwards(bus):
    given_up = threading.Event()
    values = [[1.0], [2.0], [3.0]]

    def program():
        comm = comms.new_comm("loopback", name="late", bus=bus)
        rank = comm.get_rank()
        if rank == 2:
            assert given_up.wait(60)
        with pytest.raises(TimeoutError, match="all_reduce of group 'late': not all ranks have come within 0.05 s; rank 2 has not"):
            comm.all_reduce(values[rank], timeout=0.05 if rank == 0 else None)
        if rank == 0:
            given_up.set()
        again = [float(rank)]
        comm.all_reduce(again)
        return again

    assert comms.run_ranks(3, program) == [[3.0]] * 3
    assert values == [[1.0], [2.0], [3.0]]


def test_what_is_sent_for_a_receive_that_waits_no_longer_fails_too(bus):
    given_up = threading.Event()
    got = [0]

    def program():
        comm = comms.new_comm("loopback", name="pair", bus=bus)
        if comm.get_rank() == 1:
            with pytest.raises(TimeoutError):
                comm.recv(got, 0, timeout=0.05)
            given_up.set()
            comm.recv(got, 0)
        else:
            assert given_up.wait(60)
            with pytest.raises(TimeoutError):
                comm.send([1], 1)
            comm.send([2], 1)

    comms.run_ranks(2, program)
    assert got == [2]


def test_of_two_receives_only_the_one_that_was_given_up_fails(bus):
    given_up = threading.Event()
    got = np.zeros((2, 2))

    def program():
        comm = comms.new_comm("loopback", name="two", bus=bus)
        if comm.get_rank() == 1:
            first = comm.recv(got[0], 0, async_op=True)
            with pytest.raises(TimeoutError):
                comm.recv(got[1], 0, timeout=0.05)
            given_up.set()
            first.wait()
        else:
            assert given_up.wait(60)
            comm.send(np.array([1.0, 2.0]), 1)
            with pytest.raises(TimeoutError):
                comm.send(np.array([3.0, 4.0]), 1)

    comms.run_ranks(2, program)
    assert got.tolist() == [[1.0, 2.0], [0.0, 0.0]]


@pytest.mark.parametrize("leave", ["finalize", "return"])
@pytest.mark.parametrize("first", [0, 1])  # who comes first: who waits, or who leaves
def test_nobody_waits_for_a_rank_that_has_left(bus, leave, first):
    begun = threading.Event()

    def program():
        comm = comms.new_comm("loopback", name="left", bus=bus)
        if comm.get_rank() == 1:
            if first == 0:
                assert begun.wait(60)
            if leave == "finalize":
                comm.finalize()
            if first == 1:
                begun.set()
            return
        if first == 1:
            assert begun.wait(60)
        work = comm.barrier(async_op=True)
        took = comm.recv([0], 1, async_op=True)
        begun.set()
        for one in (work, took):
            with pytest.raises(RuntimeError, match="rank 1 has (left the group|returned)"):
                one.wait()

    comms.run_ranks(2, program)


def test_a_communicator_may_be_used_after_its_threads_have_ended(bus):
    made = comms.run_ranks(2, lambda: comms.new_comm("loopback", name="kept", bus=bus))
    works = [comm.barrier(async_op=True) for comm in made]
    for work in works:
        work.wait()


@pytest.mark.parametrize(("tensors", "ops", "type", "words"), [
    ([np.ones(2), np.ones(2)], ["sum", "max"], "ValueError", "rank 0 reduces by SUM, and rank 1 by MAX"),
    ([np.ones(2), np.ones(2, np.int32)], ["sum", "sum"], "TypeError", "rank 0 has tensors of float64, and rank 1 of int32"),
    ([(1, 2), (1, 2)], ["sum", "sum"], "TypeError", "a tuple cannot be written to"),
    ([["a"], ["b"]], ["sum", "sum"], "TypeError", "has no numbers"),
])
def test_what_does_not_go_together_fails_for_all(bus, tensors, ops, type, words):
    def program():
        comm = comms.new_comm("loopback", name="odd", bus=bus)
        comm.all_reduce(tensors[comm.get_rank()], getattr(comms.ReduceOp, ops[comm.get_rank()].upper()))

    for got, said in outcomes(2, program):
        assert (got, words in said) == (type, True), said


def test_lists_take_numbers_of_any_type(bus):
    def program():
        comm = comms.new_comm("loopback", name="lists", bus=bus)
        values = [[1, 2], [0.5, 0.5]][comm.get_rank()]
        comm.all_reduce(values)
        return values

    assert comms.run_ranks(2, program) == [[1.5, 2.5]] * 2


def test_what_is_received_has_the_type_that_was_sent(bus):
    def program():
        comm = comms.new_comm("loopback", name="types", bus=bus)
        if comm.get_rank() == 0:
            comm.send(np.ones(2), 1)
        else:
            comm.recv(np.ones(2, np.int32), 0)

    assert outcomes(2, program)[1] == ("TypeError", "float64 was sent, and the tensor that receives it is of int32; give one of that type")


def test_arguments_that_cannot_be(bus):
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"size is {size}"):
            comms.run_ranks(size, lambda: None)
    with pytest.raises(TypeError, match="size is 'a'"):
        comms.run_ranks("a", lambda: None)
    with pytest.raises(TypeError, match="give a function"):
        comms.run_ranks(1, 1)
    with pytest.raises(ValueError, match="a time of -1 was given; give seconds from 0"):
        comms.new_comm("loopback", bus=bus, timeout=-1)
    comm = comms.new_comm("loopback", bus=bus)
    with pytest.raises(ValueError, match="a time of -2 was given"):
        comm.abort(within=-2)
    with pytest.raises(ValueError, match="within is None"):
        comm.abort(within=None)
