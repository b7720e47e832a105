"""What operations and reductions are called: torchcomms' words, and c10d's beside them."""

from __future__ import annotations

import enum
from typing import Any


class OpName(str, enum.Enum):
    """torchcomms' 22 operations. A str, too: ``OpName.all_reduce == "all_reduce"``."""

    send = "send"
    recv = "recv"
    broadcast = "broadcast"
    all_reduce = "all_reduce"
    reduce = "reduce"
    all_gather = "all_gather"
    all_gather_v = "all_gather_v"
    all_gather_single = "all_gather_single"
    reduce_scatter = "reduce_scatter"
    reduce_scatter_v = "reduce_scatter_v"
    reduce_scatter_single = "reduce_scatter_single"
    all_to_all_single = "all_to_all_single"
    all_to_all_v_single = "all_to_all_v_single"
    all_to_all = "all_to_all"
    barrier = "barrier"
    scatter = "scatter"
    gather = "gather"
    gather_single = "gather_single"
    # Of str, and of this class's instances only.
    split = "split"  # type: ignore[assignment]
    new_window = "new_window"
    batch_op_issue = "batch_op_issue"
    finalize = "finalize"


class OtherOp(str):
    """An operation beyond the 22, by the word of events: "exclusive_scan"."""

    @property
    def name(self) -> str:
        return str(self)

    @property
    def value(self) -> str:
        return str(self)


def name_of(op: str, word: str) -> OpName | OtherOp:
    """`op` is torchcomms' word, "other" where it has none; `word` is that of events."""
    return OtherOp(word) if op == "other" else OpName(op)


class HookOpName(enum.Enum):
    """c10d's words of operations, as its hooks get them. Compare by name: UNKNOWN's number moves between versions."""

    SEND = 0
    RECV = 1
    BROADCAST = 2
    ALLREDUCE = 3
    REDUCE = 4
    ALLGATHER = 5
    REDUCE_SCATTER = 6
    ALLTOALL = 7
    BARRIER = 8
    SCATTER = 9
    GATHER = 10
    SPLIT = 11
    NEW_WINDOW = 12
    ALLREDUCE_COALESCED = 13
    ALLGATHER_BASE = 14
    ALLGATHER_COALESCED = 15
    ALLGATHER_INTO_TENSOR_COALESCED = 16
    REDUCE_SCATTER_BASE = 17
    REDUCE_SCATTER_TENSOR_COALESCED = 18
    ALLTOALL_BASE = 19
    UNKNOWN = 20


_C10D = {"all_reduce": "ALLREDUCE", "all_gather": "ALLGATHER", "all_gather_v": "ALLGATHER", "all_gather_single": "ALLGATHER_BASE",
         "reduce_scatter_v": "REDUCE_SCATTER", "reduce_scatter_single": "REDUCE_SCATTER_BASE", "all_to_all": "ALLTOALL",
         "all_to_all_single": "ALLTOALL_BASE", "all_to_all_v_single": "ALLTOALL_BASE", "gather_single": "GATHER",
         "all_reduce_coalesced": "ALLREDUCE_COALESCED", "all_gather_coalesced": "ALLGATHER_COALESCED"}


def c10d_name_of(name: OpName | OtherOp) -> HookOpName:
    word = _C10D.get(name.value, name.value.upper())
    return HookOpName.__members__.get(word, HookOpName.UNKNOWN)


class RedOpType(enum.Enum):
    """The kinds of ReduceOp."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "bit_and"
    BOR = "bit_or"
    BXOR = "bit_xor"
    PREMUL_SUM = "premul_sum"
    AVG = "avg"


class ReduceOp:
    """How ranks' values become one: ReduceOp.SUM, …, or ReduceOp.PREMUL_SUM(factor). PyTorch's are taken as well."""

    SUM: ReduceOp
    PRODUCT: ReduceOp
    MIN: ReduceOp
    MAX: ReduceOp
    BAND: ReduceOp
    BOR: ReduceOp
    BXOR: ReduceOp
    AVG: ReduceOp

    def __init__(self, type: RedOpType, factor: Any = None) -> None:
        if not isinstance(type, RedOpType):
            raise TypeError(f"a reduction is ReduceOp.SUM, .AVG, .PRODUCT …, and not {type!r}")
        self._type = type
        self.factor = factor

    @staticmethod
    def PREMUL_SUM(factor: Any) -> ReduceOp:
        """The sum of what each rank has multiplied by its factor."""
        return ReduceOp(RedOpType.PREMUL_SUM, factor)

    @property
    def type(self) -> RedOpType:
        return self._type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReduceOp) and other._type is self._type and bool(other.factor is self.factor or other.factor == self.factor)

    def __hash__(self) -> int:
        return hash(self._type)

    def __repr__(self) -> str:
        return f"ReduceOp.{self._type.name}" + ("" if self.factor is None else f"({self.factor!r})")


for _one in RedOpType:
    if _one is not RedOpType.PREMUL_SUM:
        setattr(ReduceOp, _one.name, ReduceOp(_one))


def reduce_op(op: Any) -> ReduceOp:
    """Ours as it is; PyTorch's by its name."""
    if isinstance(op, ReduceOp):
        return op
    name = getattr(op, "name", None) or str(op).rpartition(".")[2]
    if str(name) in RedOpType.__members__ and str(name) != "PREMUL_SUM" and not isinstance(op, str):
        return ReduceOp(RedOpType[str(name)])
    raise TypeError(f"a reduction is ReduceOp.SUM, .AVG, .PRODUCT, .MIN, .MAX, .BAND, .BOR, .BXOR or .PREMUL_SUM(factor), and not {op!r}")


def reduce_op_of(word: str | None) -> ReduceOp | None:
    """Of the word of events; None where an operation reduces nothing, or by a reduction that has no name."""
    return None if word is None or word == "other" else ReduceOp(RedOpType(word))
