"""What hooks are given."""

from __future__ import annotations

from typing import Any

from .. import _native
from ._names import HookOpName, OpName, OtherOp, ReduceOp, c10d_name_of, name_of, reduce_op_of

_OF_ONE = frozenset({"send", "recv", "broadcast", "all_reduce", "reduce"})  # have one tensor, .tensor
_LISTS_IN = frozenset({"reduce_scatter", "reduce_scatter_v", "all_to_all", "scatter"})
_LISTS_OUT = frozenset({"all_gather", "all_gather_v", "all_to_all", "gather"})
_ROOTED = frozenset({"broadcast", "reduce", "scatter", "gather", "gather_single"})


class PreHookArgs:
    """Before the backend is called. What an operation does not have is None.

    Where Python called for the operation, tensors are its very objects; where C++ did, they are described: shape, dtype,
    nbytes, data, device. They may be kept, like any object.
    """

    __slots__ = ("async_op", "group", "inputs", "name", "op", "op_id", "outputs", "rank", "_extra", "_peer")

    name: OpName | OtherOp | str

    def __init__(self, op_id: int, name: str, word: str, async_op: bool, inputs: list[Any], outputs: list[Any], peer: int,
                 reduction: str | None, extra: Any, group: str, rank: int) -> None:
        self.name = name_of(name, word)
        self.op_id = op_id
        self.async_op = async_op
        self.inputs, self.outputs = inputs, outputs
        self.op: ReduceOp | None = reduce_op_of(reduction)
        self.group, self.rank = group, rank
        self._peer, self._extra = peer, extra

    @property
    def tensor(self) -> Any:
        """Of send, recv, broadcast, all_reduce and reduce."""
        return (self.inputs or self.outputs)[0] if self.name in _OF_ONE else None

    @property
    def input(self) -> Any:
        """A tensor; of reduce_scatter, all_to_all and scatter the list."""
        if self.name in _OF_ONE:
            return None
        return self.inputs if self.name in _LISTS_IN or len(self.inputs) > 1 else self.inputs[0] if self.inputs else None

    @property
    def output(self) -> Any:
        """A tensor; of all_gather, all_to_all and gather the list."""
        if self.name in _OF_ONE:
            return None
        return self.outputs if self.name in _LISTS_OUT or len(self.outputs) > 1 else self.outputs[0] if self.outputs else None

    @property
    def tensors(self) -> list[Any]:
        """All of them, each once."""
        return list({id(tensor): tensor for tensor in [*self.inputs, *self.outputs]}.values())

    @property
    def root(self) -> int | None:
        """Of broadcast, reduce, scatter and gather."""
        return self._peer if self.name in _ROOTED else None

    @property
    def peer(self) -> int | None:
        """Of send and recv: the other rank."""
        return self._peer if self.name not in _ROOTED and self._peer >= 0 else None

    @property
    def input_split_sizes(self) -> list[int] | None:
        """Of all_to_all_v_single."""
        return self._extra[0] if self.name == OpName.all_to_all_v_single else None

    @property
    def output_split_sizes(self) -> list[int] | None:
        """Of all_to_all_v_single."""
        return self._extra[1] if self.name == OpName.all_to_all_v_single else None

    @property
    def ranks(self) -> list[int] | None:
        """Of split: who is in the new group, by the ranks of this one."""
        return self._extra[0] if self.name == OpName.split else None

    @property
    def new_name(self) -> str | None:
        """Of split: the name of the new group."""
        return self._extra[1] if self.name == OpName.split else None

    @property
    def num_ops(self) -> int | None:
        """Of batch_op_issue."""
        return self._extra if self.name == OpName.batch_op_issue else None

    def __repr__(self) -> str:
        return f"<before {_word(self.name)}, op_id {self.op_id}, of group {self.group!r}>"


class SplitPreHookArgs(PreHookArgs):
    """As torchcomms' callbacks of three arguments get it: `name` is the new group's."""

    __slots__ = ("_new_name",)

    def __init__(self, of: PreHookArgs) -> None:
        for slot in PreHookArgs.__slots__:
            setattr(self, slot, getattr(of, slot))
        self.name = str(of.new_name)

    @property
    def ranks(self) -> list[int] | None:
        return list(self._extra[0])

    @property
    def new_name(self) -> str | None:
        return str(self.name)


class PostHookArgs:
    """After the backend's call: once for each call of the pre hooks, and in their thread. It says that the operation was
    handed over, not that it is done."""

    __slots__ = ("async_op", "group", "name", "new_comm", "op_id", "outcome", "rank", "reason", "work")

    def __init__(self, op_id: int, name: str, word: str, outcome: str, reason: str, work: Any, new_comm: Any, group: str, rank: int,
                 async_op: bool | None) -> None:
        self.name = name_of(name, word)
        self.op_id = op_id
        self.outcome = outcome
        """"issued"; "refused": by a pre hook, and the backend was not called; "threw": the backend did not take it"""
        self.reason = reason
        self.work = work
        self.new_comm = new_comm
        """Of split: this rank's part; None where it is in none."""
        self.group, self.rank = group, rank
        self.async_op = async_op
        """None: C++ called for it."""

    def __repr__(self) -> str:
        return f"<after {_word(self.name)}, op_id {self.op_id}, of group {self.group!r}: {self.outcome}>"


class CompletionHookArgs:
    """The end of an operation, said once, by whichever thread sees it.

    `name` is the word of events, which has one for all_gather and all_gather_single: what the pre hook got has the same op_id.
    """

    __slots__ = ("name", "op_id", "record")

    def __init__(self, op_id: int, completed: _native.Record | None, failed: _native.Record | None) -> None:
        self.op_id = op_id
        record = completed if completed is not None else failed
        assert record is not None
        self.record = record
        """The event: collective.completed or collective.failed."""
        self.name: OpName | OtherOp = name_of(record.op if record.op in OpName.__members__ else "other", record.op)

    @property
    def completed(self) -> bool:
        return self.record.channel == "collective.completed"

    @property
    def how(self) -> str:
        """"completed", or how it failed: "error", "timed_out", "aborted", "vetoed", "cancelled", "unknown"."""
        return "completed" if self.completed else str(self.record.how)

    @property
    def reason(self) -> str:
        """Why it failed; "" where it completed."""
        return "" if self.completed else str(self.record.reason)

    @property
    def duration_ns(self) -> int:
        """From its start, or where that was not said from its issue, to its end."""
        return int(self.record.duration_ns if self.completed else self.record.elapsed_ns)

    @property
    def group(self) -> str:
        return str(self.record.group)

    def __repr__(self) -> str:
        return f"<end of {_word(self.name)}, op_id {self.op_id}, of group {self.group!r}: {self.how}>"


class AbortHookArgs:
    """A group is given up."""

    __slots__ = ("asked_by", "incident", "reason")

    def __init__(self, incident: int, reason: str, asked_by: str) -> None:
        self.incident, self.reason, self.asked_by = incident, reason, asked_by

    def __repr__(self) -> str:
        return f"<abort {self.incident}: {self.reason!r}, asked by the {self.asked_by}>"


class C10dPreHookArgs:
    """As c10d's pre hooks get it."""

    __slots__ = ("async_op", "input_tensors", "name", "op_id", "output_tensors", "root")

    def __init__(self, of: PreHookArgs) -> None:
        self.name: HookOpName = c10d_name_of(name_of(of.name, of.name) if of.name in OpName.__members__ else OtherOp(of.name))
        self.op_id, self.async_op = of.op_id, of.async_op
        same = of.tensor is not None and bool(of.inputs) and of.name != OpName.send
        self.input_tensors, self.output_tensors = of.inputs, [] if same else of.outputs
        root = of.root if of.root is not None else of.peer
        self.root = -1 if root is None else root


class C10dPostHookArgs:
    """As c10d's post hooks get it."""

    __slots__ = ("async_op", "name", "op_id", "work")

    def __init__(self, of: PostHookArgs) -> None:
        self.name: HookOpName = c10d_name_of(of.name)
        self.op_id, self.async_op, self.work = of.op_id, bool(of.async_op), of.work


def _word(name: str) -> str:
    return name.value if isinstance(name, OpName) else name
