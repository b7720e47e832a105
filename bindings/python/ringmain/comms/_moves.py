"""What the loopback's ranks give and take: whose tensors go where, once all have called.

Tensors are NumPy arrays, PyTorch's on the CPU, buffers, and lists of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._names import RedOpType, ReduceOp
from ._work import Work

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(eq=False)  # tensors cannot be compared
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
        values = tensor
    elif isinstance(tensor, (list, tuple)):
        values = np.asarray(tensor)
    elif hasattr(tensor, "detach"):
        values = np.asarray(tensor.detach().numpy())
    else:
        values = np.asarray(memoryview(tensor))
    if values.dtype.kind in "OSUmM":
        raise TypeError(f"a tensor of {values.dtype} has no numbers; give an array, a tensor or a list of numbers")
    return values


def type_of(tensor: Any) -> str | None:
    """None: it is a list, which takes any numbers."""
    return None if isinstance(tensor, (list, tuple)) else str(read(tensor).dtype)


def write(tensor: Any, values: Array) -> None:
    """Into its memory, by the order of its elements."""
    if isinstance(tensor, tuple):
        raise TypeError("a tuple cannot be written to; give a list, an array or a tensor")
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


def check_alike(op: str, calls: list[Call]) -> None:
    """Do all reduce in one way, and give numbers of one type?"""
    first = calls[0]
    for rank, call in enumerate(calls):
        if first.reduce is not None and call.reduce is not None and call.reduce.type is not first.reduce.type:
            raise ValueError(f"{op}: rank 0 reduces by {first.reduce.type.name}, and rank {rank} by {call.reduce.type.name}")
    types = [(rank, type_of(tensor)) for rank, call in enumerate(calls) for tensor in [*call.inputs, *call.outputs]]
    types = [(rank, type) for rank, type in types if type is not None]
    for rank, type in types:
        if type != types[0][1]:
            raise TypeError(f"{op}: rank {types[0][0]} has tensors of {types[0][1]}, and rank {rank} of {type}")


def move(calls: list[Call]) -> None:
    """Does a collective, of which all ranks' calls are there, in the order of ranks."""
    op = calls[0].op
    check_alike(op, calls)
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
