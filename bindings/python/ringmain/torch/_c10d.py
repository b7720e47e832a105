"""What do PyTorch's words and arguments say of an operation? Read without keeping any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._collectives import Call, Shown


class Method(NamedTuple):
    """A method of ProcessGroup: where its tensors stand, and the other rank or root where no options have it."""

    give: int | None = None
    get: int | None = None
    peer: int | None = None
    op: str = ""  # another spelling, where the table of all sources (collective_names.hpp) does not have this one
    point_to_point: bool = False
    kind: str = ""  # torchcomms' word, as hooks get it; "": it has none


_INTO = Method(give=1, get=0)
METHODS: dict[str, Method] = {
    "allreduce": Method(0, 0, kind="all_reduce"),
    "allreduce_coalesced": Method(0, 0),
    "broadcast": Method(0, 0, peer=1, kind="broadcast"),
    "reduce": Method(0, 0, peer=1, kind="reduce"),
    "allgather": _INTO._replace(kind="all_gather"),
    "_allgather_base": _INTO._replace(kind="all_gather_single"),
    "all_gather_single": _INTO._replace(kind="all_gather_single"),
    "allgather_coalesced": _INTO,
    "allgather_into_tensor_coalesced": _INTO,
    "all_gather_single_coalesced": _INTO._replace(op="all_gather_coalesced"),
    "gather": _INTO._replace(peer=2, kind="gather"),
    "scatter": _INTO._replace(peer=2, kind="scatter"),
    "reduce_scatter": _INTO._replace(kind="reduce_scatter"),
    "_reduce_scatter_base": _INTO._replace(kind="reduce_scatter_single"),
    "reduce_scatter_single": _INTO._replace(kind="reduce_scatter_single"),
    "reduce_scatter_tensor_coalesced": _INTO,
    "reduce_scatter_single_coalesced": _INTO._replace(op="reduce_scatter_coalesced"),
    "alltoall": _INTO._replace(kind="all_to_all"),
    "alltoall_base": _INTO._replace(kind="all_to_all_single"),
    "all_to_all_single": _INTO._replace(kind="all_to_all_single"),
    "barrier": Method(kind="barrier"),
    "monitored_barrier": Method(),
    "send": Method(give=0, peer=1, point_to_point=True, kind="send"),
    "recv": Method(get=0, peer=1, point_to_point=True, kind="recv"),
    "recv_anysource": Method(get=0, op="recv", point_to_point=True, kind="recv"),
}

MAKING_HOOKS = ("SPLIT", "NEW_WINDOW")  # of HookOpName: no operations on data
POINT_TO_POINT_HOOKS = ("SEND", "RECV")
_HOOK_KINDS: dict[str, str] = {
    "SEND": "send", "RECV": "recv", "BROADCAST": "broadcast", "ALLREDUCE": "all_reduce", "REDUCE": "reduce",
    "ALLGATHER": "all_gather", "ALLGATHER_BASE": "all_gather_single", "REDUCE_SCATTER": "reduce_scatter",
    "REDUCE_SCATTER_BASE": "reduce_scatter_single", "ALLTOALL": "all_to_all", "ALLTOALL_BASE": "all_to_all_single",
    "BARRIER": "barrier", "SCATTER": "scatter", "GATHER": "gather",
}
# Of how many tensors torchcomms' operations are, where it is one; PyTorch's may have several.
_ONE_EACH = {"all_gather_single", "reduce_scatter_single", "all_to_all_single", "all_to_all_v_single"}
_ONE_IN = _ONE_EACH | {"send", "broadcast", "all_reduce", "reduce", "all_gather", "gather"}
_ONE_OUT = _ONE_EACH | {"recv", "reduce_scatter", "scatter"}
_REDUCTIONS = {"SUM": "sum", "AVG": "avg", "PRODUCT": "product", "MIN": "min", "MAX": "max", "BAND": "bit_and", "BOR": "bit_or",
               "BXOR": "bit_xor", "PREMUL_SUM": "premul_sum"}

# As PyTorch's recorder writes them: the word for it here, and how large one is.
_DTYPES: dict[str, tuple[str, int]] = {
    "Float": ("float32", 4), "Double": ("float64", 8), "Half": ("float16", 2), "BFloat16": ("bfloat16", 2),
    "Long": ("int64", 8), "Int": ("int32", 4), "Short": ("int16", 2), "Char": ("int8", 1), "Byte": ("uint8", 1),
    "Bool": ("bool", 1), "ComplexHalf": ("complex32", 4), "ComplexFloat": ("complex64", 8),
    "ComplexDouble": ("complex128", 16), "UInt16": ("uint16", 2), "UInt32": ("uint32", 4), "UInt64": ("uint64", 8),
    "Float8_e5m2": ("float8_e5m2", 1), "Float8_e4m3fn": ("float8_e4m3fn", 1),
}
# What PyTorch takes long to say of its own objects, by the object.
_words_of_dtypes: dict[Any, str] = {}
_places: dict[Any, tuple[int, str]] = {}  # of a device: its index, its type
_words_of_reductions: dict[Any, str] = {}
_NOT_REDUCING = {"broadcast", "all_gather", "all_gather_single", "gather", "scatter", "all_to_all", "all_to_all_single", "barrier",
                 "send", "recv"}


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
        place = _places.get(device)
        if place is None:
            place = _places[device] = (-1 if device.index is None else device.index, device.type)
        index, kind = place
        return Moved(elements, elements * value.element_size(), word, index, kind)
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
    kind: str = ""
    inputs: Any = None  # tensors, or lists of them
    outputs: Any = None
    in_place: bool = False
    reduction: Any = None
    splits: tuple[Any, Any] = ((), ())  # of inputs and outputs
    point_to_point: bool = False

    @property
    def device_type(self) -> str:
        return self.give.device_type or self.get.device_type

    def call(self, sequence: int, correlation: int, backend: str) -> Call:
        first = self.give if self.give.device_type else self.get
        return Call(self.op, sequence, max(self.give.bytes, self.get.bytes), self.give.elements, self.get.elements, correlation,
                    first.dtype, backend, self.peer, first.device, self.asynchronous)

    def shown(self) -> Shown:
        inputs = flat(self.inputs)
        outputs = inputs if self.in_place else flat(self.outputs)
        kind, (in_splits, out_splits) = self.kind, self.splits
        if kind == "all_to_all_single" and (in_splits or out_splits):
            kind = "all_to_all_v_single"
        if (kind in _ONE_IN and len(inputs) != 1) or (kind in _ONE_OUT and len(outputs) != 1):
            kind = ""
        return Shown(kind, inputs, outputs, _word_of(getattr(self.reduction, "op", self.reduction)), list(in_splits), list(out_splits),
                     self.point_to_point)


def _word_of(reduction: Any) -> str:
    word = _words_of_reductions.get(reduction)
    if word is None:
        word = _words_of_reductions[reduction] = _REDUCTIONS.get(getattr(reduction, "name", ""), "other")
    return word


def flat(value: Any) -> list[Any]:
    """A tensor, or lists of them: all."""
    if value is None:
        return []
    if type(value) is list and len(value) == 1 and not isinstance(value[0], (list, tuple)):
        return value
    return [tensor for part in value for tensor in flat(part)] if isinstance(value, (list, tuple)) else [value]


def called(name: str, method: Method, args: tuple[Any, ...], named: Mapping[str, Any]) -> Called:
    """A call of a method of ProcessGroup. Both kinds of its overloads: with options at the end, and without."""
    options = named.get("opts", args[-1] if args else None)
    inputs = _argument(args, named, method.give, ("input", "tensor"))
    outputs = _argument(args, named, method.get, ("output", "tensor"))
    peer = None
    if method.peer is not None:  # to ask options for what they lack costs as much as all else here
        peer = getattr(options, "rootRank", None)
    if peer is None and method.peer is not None:
        peer = args[method.peer] if len(args) > method.peer else \
            next((named[key] for key in ("root", "dstRank", "srcRank") if key in named), None)
    in_place = method.give is not None and method.give == method.get
    give = moved(inputs)
    return Called(method.op or name, give, give if in_place else moved(outputs), peer if isinstance(peer, int) else -1,
                  bool(getattr(options, "asyncOp", False)), method.kind, inputs, outputs, in_place,
                  _reduction(method.kind, options, args, named),
                  _splits(args, named) if method.kind == "all_to_all_single" else ((), ()),
                  method.point_to_point)


def _argument(args: tuple[Any, ...], named: Mapping[str, Any], place: int | None, words: tuple[str, ...]) -> Any:
    if place is None:
        return None
    if len(args) > place:
        return args[place]
    return next((value for key, value in named.items() if key.startswith(words) and not key.endswith("split_sizes")), None)


def _reduction(kind: str, options: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """ReduceOp, or one of its RedOpType."""
    if kind in _NOT_REDUCING:
        return _Sum
    found = getattr(options, "reduceOp", None)
    if found is None:
        found = named.get("op")
    return found if found is not None else next((one for one in args if type(one).__name__ in ("ReduceOp", "RedOpType")), _Sum)


class _Sum:
    name = "SUM"  # as PyTorch's own default


def _splits(args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, Any]:
    out_splits, in_splits = (args[place] if len(args) > place else named.get(key, ())
                             for place, key in ((2, "output_split_sizes"), (3, "input_split_sizes")))
    return in_splits, out_splits


def hooked(args: Any) -> Called | None:
    """A pre hook's arguments; None: no operation on data."""
    name: str = args.name.name
    if name in MAKING_HOOKS:
        return None
    inputs, outputs = list(args.input_tensors), list(args.output_tensors)
    give, get = moved(inputs), moved(outputs)
    in_place = not outputs and name in ("ALLREDUCE", "ALLREDUCE_COALESCED", "BROADCAST", "REDUCE")
    return Called(name, give, give if in_place else get, int(args.root), bool(args.async_op), _HOOK_KINDS.get(name, ""),
                  inputs, outputs, in_place, point_to_point=name in POINT_TO_POINT_HOOKS)


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
