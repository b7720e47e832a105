"""A backend inside one process: ranks are threads, and what they say to each other goes through memory.

A collective is done by the thread of the rank that comes last, so an asynchronous one may be completed by a thread that did not
call for it. Tensors are NumPy arrays, PyTorch's on the CPU, buffers, and lists of numbers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._names import RedOpType, ReduceOp
from ._work import CommunicatorAborted, Work

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Call:
    """One rank's call for an operation."""

    op: str
    inputs: list[Any]
    outputs: list[Any]
    peer: int = -1
    reduce: ReduceOp | None = None
    splits: tuple[Sequence[int], Sequence[int]] = ((), ())
    ranks: list[int] = field(default_factory=list)
    parts: list[Call] = field(default_factory=list)  # of a batch
    name: str = ""
    work: Work | None = None
    part: Any = None  # of split: the backend's part; None: this rank is in none

    def said(self) -> Work:
        assert self.work is not None
        return self.work


def read(tensor: Any) -> Array:
    """Its values; its very memory where it has any."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if isinstance(tensor, (list, tuple)):
        return np.asarray(tensor)
    if hasattr(tensor, "detach"):
        return np.asarray(tensor.detach().numpy())
    return np.asarray(memoryview(tensor))


def write(tensor: Any, values: Array) -> None:
    """Into its memory, by the order of its elements."""
    if isinstance(tensor, list):
        if len(tensor) != values.size:
            raise ValueError(f"a tensor of {len(tensor)} elements cannot take {values.size}; give one of that size")
        tensor[:] = values.reshape(-1).tolist()
        return
    to = read(tensor)
    if to.size != values.size:
        raise ValueError(f"a tensor of {to.size} elements cannot take {values.size}; give one of that size")
    np.copyto(to, values.reshape(to.shape), casting="unsafe")


_FOLDS: dict[RedOpType, Callable[[Any, Any], Any]] = {
    RedOpType.SUM: np.add, RedOpType.AVG: np.add, RedOpType.PREMUL_SUM: np.add, RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum, RedOpType.MAX: np.maximum, RedOpType.BAND: np.bitwise_and, RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor}


def reduced(by: ReduceOp | None, values: list[Array], factors: list[Any]) -> Array:
    assert by is not None
    if by.type is RedOpType.PREMUL_SUM:
        values = [value * read(factor) if hasattr(factor, "shape") else value * factor for value, factor in zip(values, factors)]
    total = values[0].copy()
    for value in values[1:]:
        if value.shape != total.shape:
            raise ValueError(f"ranks reduce tensors of {total.size} and of {value.size} elements; all must have one shape")
        total = _FOLDS[by.type](total, value)
    return total // len(values) if by.type is RedOpType.AVG and total.dtype.kind in "iu" else \
        total / len(values) if by.type is RedOpType.AVG else total


def move(calls: list[Call]) -> None:
    """Does a collective, of which all ranks' calls are there, in the order of ranks."""
    op = calls[0].op
    ins = [[read(one) for one in call.inputs] for call in calls]
    factors = [call.reduce.factor if call.reduce is not None else None for call in calls]
    size = len(calls)

    def total(values: list[Array]) -> Array:
        return reduced(calls[0].reduce, values, factors)

    if op in ("broadcast", "scatter", "reduce", "gather", "gather_single") and len({call.peer for call in calls}) > 1:
        raise ValueError(f"{op}: ranks name different roots ({', '.join(str(call.peer) for call in calls)})")
    root = calls[0].peer
    if op == "all_reduce":
        answer = total([one[0] for one in ins])
        _give([(call.inputs[0], answer) for call in calls])
    elif op == "reduce":
        write(calls[root].inputs[0], total([one[0] for one in ins]))
    elif op == "broadcast":
        _give([(call.inputs[0], ins[root][0].copy()) for call in calls])
    elif op in ("all_gather", "all_gather_v"):
        _give([(to, values[0].copy()) for call in calls for to, values in zip(_each(call, call.outputs, size), ins)])
    elif op in ("all_gather_single", "gather_single"):
        whole = np.concatenate([one[0].reshape(-1) for one in ins])
        _give([(call.outputs[0], whole) for rank, call in enumerate(calls) if op == "all_gather_single" or rank == root])
    elif op in ("reduce_scatter", "reduce_scatter_v"):
        for call in calls:
            _each(call, call.inputs, size)
        _give([(call.outputs[0], total([one[rank] for one in ins])) for rank, call in enumerate(calls)])
    elif op == "reduce_scatter_single":
        parts = _parts(op, total([one[0].reshape(-1) for one in ins]), size)
        _give([(call.outputs[0], part) for call, part in zip(calls, parts)])
    elif op == "all_to_all":
        for call in calls:
            _each(call, call.inputs, size)
        _give([(_each(call, call.outputs, size)[other], ins[other][rank].copy()) for rank, call in enumerate(calls) for other in range(size)])
    elif op == "all_to_all_single":
        cut = [_parts(op, one[0].reshape(-1), size) for one in ins]
        _give([(call.outputs[0], np.concatenate([one[rank] for one in cut])) for rank, call in enumerate(calls)])
    elif op == "all_to_all_v_single":
        cut = [np.split(one[0], np.cumsum(_each(call, call.splits[0], size))[:-1]) for one, call in zip(ins, calls)]
        for rank, call in enumerate(calls):
            if [len(one[rank]) for one in cut] != _each(call, call.splits[1], size):
                raise ValueError(f"{op}: rank {rank} waits for {list(call.splits[1])} rows, and gets {[len(one[rank]) for one in cut]}")
        _give([(call.outputs[0], np.concatenate([one[rank] for one in cut])) for rank, call in enumerate(calls)])
    elif op == "scatter":
        _give([(call.outputs[0], values.copy()) for call, values in zip(calls, [read(one) for one in _each(calls[root], calls[root].inputs, size)])])
    elif op == "gather":
        _give([(to, values[0].copy()) for to, values in zip(_each(calls[root], calls[root].outputs, size), ins)])


def _give(answers: list[tuple[Any, Array]]) -> None:
    """All of them are made before the first is written: a tensor may be in and out."""
    for to, values in answers:
        write(to, values)


def _each(call: Call, of: Any, size: int) -> list[Any]:
    if len(of) != size:
        raise ValueError(f"{call.op}: {len(of)} are given for {size} ranks; give one for each")
    return list(of)


def _parts(op: str, whole: Array, size: int) -> list[Array]:
    if whole.size % size:
        raise ValueError(f"{op}: {whole.size} elements cannot be shared by {size} ranks; give a multiple")
    return np.split(whole, size)


class World:
    """The ranks of a group, and what is under way between them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._calls: dict[int, dict[int, Call]] = {}  # of each collective, by rank
        self._counts = [0] * size
        self._sent: dict[tuple[int, int], deque[tuple[Array, Call]]] = {}
        self._wanted: dict[tuple[int, int], deque[Call]] = {}
        self._parts: list[World] = []
        self._over: str | None = None

    def start(self, rank: int, call: Call) -> None:
        """call.work is done, or fails, when all ranks have called, maybe in another's thread."""
        if call.op in ("send", "recv"):
            return self._send(rank, call) if call.op == "send" else self._recv(rank, call)
        with self._lock:
            if self._over is not None:
                return call.said()._fail(CommunicatorAborted(self._over), "aborted")
            number = self._counts[rank] = self._counts[rank] + 1
            calls = self._calls.setdefault(number, {})
            calls[rank] = call
            if len(calls) < self.size:
                return
            del self._calls[number]
        self._do(number, [calls[rank] for rank in range(self.size)])

    def _do(self, number: int, calls: list[Call]) -> None:
        try:
            if len({call.op for call in calls}) > 1:
                called = ", ".join(f"rank {rank} {call.op}" for rank, call in enumerate(calls))
                raise RuntimeError(f"ranks called for different operations as number {number} of their group: {called}")
            if calls[0].op == "split":
                self._split(calls)
            else:
                move(calls)
        except Exception as error:
            for call in calls:
                call.said()._fail(error)
        else:
            for call in calls:
                call.said()._complete()

    def _split(self, calls: list[Call]) -> None:
        parts: dict[tuple[int, ...], World] = {}
        for rank, call in enumerate(calls):
            members = tuple(call.ranks)
            if not members:
                continue
            if rank not in members:
                raise ValueError(f"split: rank {rank} names the ranks {list(members)}; it is in its own group, or names none")
            wrong = [other for other in members if not 0 <= other < self.size or tuple(calls[other].ranks) != members]
            if wrong or len(set(members)) < len(members):
                raise ValueError(f"split: rank {rank} names the ranks {list(members)}, and rank {wrong[0] if wrong else members[0]} does not")
            call.part = parts.setdefault(members, World(len(members)))
        with self._lock:
            self._parts += parts.values()

    # --- one to one ---

    def _send(self, rank: int, call: Call) -> None:
        """Done at once: what is sent is kept."""
        values = read(call.inputs[0]).copy()
        with self._lock:
            if self._over is not None:
                return call.said()._fail(CommunicatorAborted(self._over), "aborted")
            waiting = self._wanted.get((rank, call.peer))
            if not waiting:
                self._sent.setdefault((rank, call.peer), deque()).append((values, call))
                to = None
            else:
                to = waiting.popleft()
        call.said()._complete()
        if to is not None:
            _receive(to, values)

    def _recv(self, rank: int, call: Call) -> None:
        with self._lock:
            if self._over is not None:
                return call.said()._fail(CommunicatorAborted(self._over), "aborted")
            sent = self._sent.get((call.peer, rank))
            if not sent:
                self._wanted.setdefault((call.peer, rank), deque()).append(call)
                return
            values, _ = sent.popleft()
        _receive(call, values)

    def abort(self, reason: str) -> None:
        """What is under way fails, and so does what is called for later."""
        with self._lock:
            if self._over is not None:
                return
            self._over = reason
            left = [call for calls in self._calls.values() for call in calls.values()]
            left += [call for waiting in self._wanted.values() for call in waiting]
            self._calls.clear()
            self._wanted.clear()
        for call in left:
            call.said()._fail(CommunicatorAborted(reason), "aborted")

    def abort_all(self, reason: str) -> None:
        """With its parts."""
        self.abort(reason)
        for part in list(self._parts):
            part.abort_all(reason)


def _receive(call: Call, values: Array) -> None:
    try:
        write(call.outputs[0], values)
    except Exception as error:
        call.said()._fail(error)
    else:
        call.said()._complete()


# --- which ranks meet ---

_here = threading.local()  # rank and worlds of run_ranks()


class Worlds:
    """The groups that the threads of one run_ranks() make, by name."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._by_name: dict[tuple[str, int], World] = {}
        self._made: dict[tuple[str, int], int] = {}
        self._over: str | None = None

    def of(self, name: str, rank: int) -> World:
        """The n-th of that name that this rank makes is the n-th of all."""
        with self._lock:
            nth = self._made[name, rank] = self._made.get((name, rank), 0) + 1
            found = self._by_name.setdefault((name, nth), World(self.size))
            over = self._over
        if over is not None:
            found.abort(over)
        return found

    def abort_all(self, reason: str) -> None:
        with self._lock:
            self._over = reason = self._over or reason
            all = list(self._by_name.values())
        for world in all:
            world.abort_all(reason)


def here() -> tuple[int, Worlds]:
    """The rank of this thread, and its worlds; outside of run_ranks() a rank by itself."""
    found: tuple[int, Worlds] | None = getattr(_here, "place", None)
    return found if found is not None else (0, Worlds(1))


def run_ranks(size: int, program: Callable[[], Any]) -> list[Any]:
    """Runs `program` in `size` threads, each a rank: new_comm("loopback", …) in them finds the others. Returns what each
    returned, by rank; what the first raised is raised when all have ended, and the others' groups are aborted meanwhile."""
    worlds = Worlds(size)
    answers: list[Any] = [None] * size
    raised: list[BaseException] = []

    def rank_of(rank: int) -> None:
        _here.place = (rank, worlds)
        try:
            answers[rank] = program()
        except BaseException as error:
            raised.append(error)
            worlds.abort_all(f"rank {rank} has raised {type(error).__name__}")

    threads = [threading.Thread(target=rank_of, args=(rank,), name=f"rank {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return answers
