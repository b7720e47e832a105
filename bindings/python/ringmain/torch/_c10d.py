"""What do PyTorch's words and arguments say of an operation? Read without keeping any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._collectives import Call


class Method(NamedTuple):
    """A method of ProcessGroup: where its tensors stand, and the other rank or root where no options have it."""

    give: int | None = None
    get: int | None = None
    peer: int | None = None
    op: str = ""  # another spelling, where the table of all sources (collective_names.hpp) does not have this one
    point_to_point: bool = False


_INTO = Method(give=1, get=0)
METHODS: dict[str, Method] = {
    "allreduce": Method(0, 0),
    "allreduce_coalesced": Method(0, 0),
    "broadcast": Method(0, 0, peer=1),
    "reduce": Method(0, 0, peer=1),
    "allgather": _INTO,
    "_allgather_base": _INTO,
    "all_gather_single": _INTO,
    "allgather_coalesced": _INTO,
    "allgather_into_tensor_coalesced": _INTO,
    "all_gather_single_coalesced": _INTO._replace(op="all_gather_coalesced"),
    "gather": _INTO._replace(peer=2),
    "scatter": _INTO._replace(peer=2),
    "reduce_scatter": _INTO,
    "_reduce_scatter_base": _INTO,
    "reduce_scatter_single": _INTO,
    "reduce_scatter_tensor_coalesced": _INTO,
    "reduce_scatter_single_coalesced": _INTO._replace(op="reduce_scatter_coalesced"),
    "alltoall": _INTO,
    "alltoall_base": _INTO,
    "all_to_all_single": _INTO,
    "barrier": Method(),
    "monitored_barrier": Method(),
    "send": Method(give=0, peer=1, point_to_point=True),
    "recv": Method(get=0, peer=1, point_to_point=True),
    "recv_anysource": Method(get=0, op="recv", point_to_point=True),
}

MAKING_HOOKS = ("SPLIT", "NEW_WINDOW")  # of HookOpName: no operations on data
POINT_TO_POINT_HOOKS = ("SEND", "RECV")

# As PyTorch's recorder writes them: the word for it here, and how large one is.
_DTYPES: dict[str, tuple[str, int]] = {
    "Float": ("float32", 4), "Double": ("float64", 8), "Half": ("float16", 2), "BFloat16": ("bfloat16", 2),
    "Long": ("int64", 8), "Int": ("int32", 4), "Short": ("int16", 2), "Char": ("int8", 1), "Byte": ("uint8", 1),
    "Bool": ("bool", 1), "ComplexHalf": ("complex32", 4), "ComplexFloat": ("complex64", 8),
    "ComplexDouble": ("complex128", 16), "UInt16": ("uint16", 2), "UInt32": ("uint32", 4), "UInt64": ("uint64", 8),
    "Float8_e5m2": ("float8_e5m2", 1), "Float8_e4m3fn": ("float8_e4m3fn", 1),
}
_words_of_dtypes: dict[Any, str] = {}  # str() of a dtype takes as long as all else here


class Moved(NamedTuple):
    """Tensors, all together."""

    elements: int = 0
    bytes: int = 0
    dtype: str = ""  # of the first
    device: int = -1
    device_type: str = ""


_NOTHING = Moved()


def moved(value: Any) -> Moved:
    """Of a tensor, or of lists of them."""
    if value is None:
        return _NOTHING
    if not isinstance(value, (list, tuple)):
        dtype, device = value.dtype, value.device
        word = _words_of_dtypes.get(dtype) or _words_of_dtypes.setdefault(dtype, str(dtype).removeprefix("torch."))
        elements = value.numel()
        index = device.index
        return Moved(elements, elements * value.element_size(), word, -1 if index is None else index, device.type)
    if len(value) == 1:
        return moved(value[0])
    parts = [moved(part) for part in value]
    if not parts:
        return _NOTHING
    return parts[0]._replace(elements=sum(part.elements for part in parts), bytes=sum(part.bytes for part in parts))


class Called(NamedTuple):
    """One call, as far as its arguments say."""

    op: str
    give: Moved
    get: Moved
    peer: int
    asynchronous: bool

    @property
    def device_type(self) -> str:
        return self.give.device_type or self.get.device_type

    def call(self, sequence: int, correlation: int, backend: str) -> Call:
        first = self.give if self.give.device_type else self.get
        return Call(self.op, sequence, max(self.give.bytes, self.get.bytes), self.give.elements, self.get.elements, correlation,
                    first.dtype, backend, self.peer, first.device, self.asynchronous)


def called(name: str, method: Method, args: tuple[Any, ...], named: Mapping[str, Any]) -> Called:
    """A call of a method of ProcessGroup. Both kinds of its overloads: with options at the end, and without."""
    options = named.get("opts", args[-1] if args else None)
    give = _argument(args, named, method.give, ("input", "tensor"))
    get = _argument(args, named, method.get, ("output", "tensor"))
    peer = getattr(options, "rootRank", None)
    if peer is None and method.peer is not None:
        peer = args[method.peer] if len(args) > method.peer else \
            next((named[key] for key in ("root", "dstRank", "srcRank") if key in named), None)
    return Called(method.op or name, give, get, peer if isinstance(peer, int) else -1,
                  bool(getattr(options, "asyncOp", False)))


def _argument(args: tuple[Any, ...], named: Mapping[str, Any], place: int | None, words: tuple[str, ...]) -> Moved:
    if place is None:
        return _NOTHING
    if len(args) > place:
        return moved(args[place])
    return moved(next((value for key, value in named.items() if key.startswith(words)), None))


def hooked(args: Any) -> Called | None:
    """A pre hook's arguments; None: no operation on data."""
    name: str = args.name.name
    if name in MAKING_HOOKS:
        return None
    give, get = moved(list(args.input_tensors)), moved(list(args.output_tensors))
    if not get.device_type and name in ("ALLREDUCE", "ALLREDUCE_COALESCED", "BROADCAST", "REDUCE"):
        get = give  # in place
    return Called(name, give, get, int(args.root), bool(args.async_op))


def recorded(entry: Mapping[str, Any], backend: str, correlation: int) -> Call:
    """An entry of PyTorch's recorder."""
    give = _sizes(entry.get("input_sizes", ()), entry.get("input_dtypes", ()))
    get = _sizes(entry.get("output_sizes", ()), entry.get("output_dtypes", ()))
    written = str(entry.get("profiling_name", ""))
    return Call(written.partition(" ")[0], int(entry.get("collective_seq_id", 0)), max(give.bytes, get.bytes), give.elements,
                get.elements, correlation, give.dtype or get.dtype, backend)


def _sizes(sizes: Iterable[Iterable[int]], dtypes: Iterable[str]) -> Moved:
    elements = size_bytes = 0
    first = ""
    for shape, dtype in zip(sizes, dtypes, strict=False):
        word, width = _DTYPES.get(dtype, (dtype.lower(), 0))
        first = first or word
        n = 1
        for length in shape:
            n *= length
        elements += n
        size_bytes += n * width
    return Moved(elements, size_bytes, first)
