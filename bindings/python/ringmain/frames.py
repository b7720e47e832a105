"""Events as Arrow's columns, and so as pandas' and Polars' frames.

A batch has to_arrow(), to_pandas(), and Arrow's PyCapsule interface, so that `polars.DataFrame(events)`, DuckDB and whoever else
takes Arrow takes it as it is. Here are the same for structured arrays (`events.array[rows]`) and for lists of batches.

A batch lies row by row, and Arrow wants columns: each column is copied once, but for one that lies back to back already, as that
of an event with one field. Needs pyarrow, and pandas for to_pandas(): pip install ringmain[arrow].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from . import _native, _numpy
from ._extra import need, to_realtime_ns

Array = np.ndarray[Any, Any]
FROM = ("worker", "publisher", "source")
_SOURCE = FROM.index("source")
_TYPES = {"u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
          "f4": "float32", "f8": "float64"}


class _Column(NamedTuple):
    name: str
    of: Any  # a pyarrow.Array
    unit: str


def to_arrow(what: _native.Batch | Array | Iterable[_native.Batch | Array]) -> Any:
    """A pyarrow.RecordBatch of a batch or structured array; a pyarrow.Table of several with the same fields.

    Enumerators and names are dictionaries of their words, 64 bits in ns durations, texts utf8; the stamp is columns of its own,
    stamp_time (of day) among them. A field's unit is its metadata `ringmain.unit`, the channel's name the
    schema's `ringmain.channel`. docs/python-tools.md has the table. TypeError: what has no fields. ValueError: several of different
    fields, or none. Threads: any.
    """
    arrow = _pyarrow("to_arrow()")
    if isinstance(what, (_native.Batch, np.ndarray)):
        return _record_batch(arrow, what)
    if isinstance(what, (str, bytes)) or not isinstance(what, Iterable):
        raise TypeError(f"to_arrow() takes a batch, a structured array or a list of them, and not {what!r}")
    parts = [_record_batch(arrow, part) for part in what]
    if not parts:
        raise ValueError("to_arrow() got no batch: an empty list does not say which columns there are")
    for part in parts:
        if not part.schema.equals(parts[0].schema):
            raise ValueError(f"one table holds events of one type: here are {_title(parts[0])} and {_title(part)}")
    return arrow.Table.from_batches([part.replace_schema_metadata(parts[0].schema.metadata) for part in parts])


def to_pandas(what: _native.Batch | Array | Iterable[_native.Batch | Array]) -> Any:
    """A pandas.DataFrame of what to_arrow() takes: dictionaries are categories, durations timedeltas."""
    _pyarrow("to_pandas()")
    need("pandas", "to_pandas()", "ringmain[arrow]")
    return to_arrow(what).to_pandas()


def c_stream(batch: _native.Batch, requested_schema: object = None) -> object:
    """What Arrow's consumers call as `__arrow_c_stream__`: a stream of one record batch."""
    arrow = _pyarrow("Arrow's interface")
    made = _record_batch(arrow, batch)
    return arrow.RecordBatchReader.from_batches(made.schema, [made]).__arrow_c_stream__(requested_schema)


def c_array(batch: _native.Batch, requested_schema: object = None) -> object:
    """`__arrow_c_array__`: the record batch."""
    return _record_batch(_pyarrow("Arrow's interface"), batch).__arrow_c_array__(requested_schema)


def _pyarrow(what: str) -> Any:
    return need("pyarrow", what, "ringmain[arrow]")


def _title(made: Any) -> str:
    name = (made.schema.metadata or {}).get(b"ringmain.channel", b"").decode()
    return name or f"fields {', '.join(made.schema.names)}"


def _record_batch(arrow: Any, of: Any) -> Any:
    channel = ""
    if isinstance(of, _native.Batch):
        channel, array = of.channel, of.array
    elif isinstance(of, np.ndarray):
        array = np.atleast_1d(of)
    else:
        raise TypeError(f"to_arrow() takes batches and structured arrays, and not {of!r}")
    if array.dtype.names is None or array.ndim != 1:
        raise TypeError(f"to_arrow() takes a structured array of one dimension, as events.array is, and not one of {array.dtype}")
    columns: list[_Column] = []
    for name in array.dtype.names:
        dtype = array.dtype[name]
        if dtype.subdtype is not None:
            raise TypeError(f"field {name!r} is of dtype {dtype}, which no event has; to_arrow() takes what batches hold")
        if name == "stamp" and dtype == _numpy.STAMP:
            columns += _stamps(arrow, array[name], set(array.dtype.names))
        else:
            metadata: dict[str, Any] = dict(dtype.metadata or {})
            columns.append(_Column(name, _column(arrow, name, array[name], metadata), metadata.get("ringmain_unit", "")))
    fields = [arrow.field(c.name, c.of.type, metadata={"ringmain.unit": c.unit} if c.unit else None) for c in columns]
    schema = arrow.schema(fields, metadata={"ringmain.channel": channel} if channel else None)
    return arrow.RecordBatch.from_arrays([c.of for c in columns], schema=schema)


def _column(arrow: Any, name: str, rows: Array, metadata: Any) -> Any:
    kind, unit = metadata.get("ringmain"), metadata.get("ringmain_unit")
    if kind == "text":
        return _texts(arrow, rows)
    if kind == "name":
        return _dictionary(arrow, rows, _native.name_text)
    if kind == "enum" and metadata.get("ringmain_enumerators"):
        return _enumerators(arrow, rows, metadata["ringmain_enumerators"].split(","))
    if rows.dtype.kind == "b":
        return _of_buffers(arrow, arrow.bool_(), len(rows), np.packbits(rows, bitorder="little"))
    if rows.dtype.kind in "SU":
        return arrow.array([str(text, "utf-8", "replace") if isinstance(text, bytes) else text for text in rows.tolist()], arrow.utf8())
    word = _TYPES.get(rows.dtype.str[1:])
    if word is None or rows.dtype.str[0] == ">":
        raise TypeError(f"field {name!r} is of dtype {rows.dtype}, which no event has; to_arrow() takes what batches hold")
    column = np.ascontiguousarray(rows)  # the one copy, if there is one
    if unit == "ns" and word in ("int64", "uint64"):
        unfit = column > np.uint64(2**63 - 1) if word == "uint64" else np.zeros(0, bool)
        return _of_buffers(arrow, arrow.duration("ns"), len(column), column, unfit)
    return _of_buffers(arrow, getattr(arrow, word)(), len(column), column)


def _of_buffers(arrow: Any, type_: Any, length: int, column: Array, missing: Array | None = None) -> Any:
    """An array of Arrow's over the memory of one of NumPy's, which it keeps."""
    valid, nulls = None, 0
    if missing is not None and missing.any():
        valid, nulls = arrow.py_buffer(np.packbits(~missing, bitorder="little")), int(missing.sum())
    return arrow.Array.from_buffers(type_, length, [valid, arrow.py_buffer(column)], nulls)


def _dictionary(arrow: Any, rows: Array, text_of: Callable[[int], str]) -> Any:
    values, where = np.unique(np.ascontiguousarray(rows), return_inverse=True)
    return _words(arrow, where.reshape(-1), [text_of(int(value)) for value in values])


def _enumerators(arrow: Any, rows: Array, words: list[str]) -> Any:
    unknown = np.unique(rows[rows >= len(words)])
    numbers = rows if not len(unknown) else np.where(rows < len(words), rows, len(words) + np.searchsorted(unknown, rows))
    return _words(arrow, numbers, words + [str(value) for value in unknown.tolist()])


def _words(arrow: Any, where: Array, texts: list[str]) -> Any:
    """A dictionary, with each text once: two may read the same, as names of bytes that are no UTF-8 do."""
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if len(places) < len(texts):
        where = np.array([places[text] for text in texts], np.int32)[where]
    return arrow.DictionaryArray.from_arrays(arrow.array(np.ascontiguousarray(where, np.int32)), arrow.array(list(places), arrow.utf8()))


def _texts(arrow: Any, rows: Array) -> Any:
    """Texts of a fixed size, each of which says how much of it is used."""
    room = rows.dtype["bytes"].itemsize
    sizes = np.minimum(rows["size_and_cut"] & 0x7FFF, room)
    held = np.ascontiguousarray(rows["bytes"]).view(np.uint8).reshape(len(rows), room)
    ends = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    used = held[np.arange(room) < sizes[:, None]]
    made = arrow.Array.from_buffers(arrow.utf8(), len(rows), [None, arrow.py_buffer(ends), arrow.py_buffer(used)], 0)
    try:
        made.validate(full=True)
    except arrow.ArrowInvalid:  # bytes that are no UTF-8, as where a text was cut: read as records read them
        texts = [bytes(used[ends[i]:ends[i + 1]]).decode("utf-8", "replace") for i in range(len(rows))]
        return arrow.array(texts, arrow.utf8())
    return made


def _stamps(arrow: Any, stamps: Array, taken: set[str]) -> list[_Column]:
    time_ns, source = np.ascontiguousarray(stamps["time_ns"]), stamps["time_from"] == _SOURCE
    clock = _of_buffers(arrow, arrow.timestamp("ns", tz="UTC"), len(stamps), time_ns + to_realtime_ns(), source)
    columns = [_Column("stamp_time", clock, ""), _Column("stamp_time_ns", _column(arrow, "", time_ns, {"ringmain_unit": "ns"}), "ns"),
               _Column("stamp_sequence", _column(arrow, "", stamps["sequence"], {}), "count"),
               _Column("stamp_publisher", _column(arrow, "", stamps["publisher"], {}), "id"),
               _Column("stamp_time_from", _enumerators(arrow, stamps["time_from"], list(FROM)), "")]
    return [column for column in columns if column.name not in taken]
