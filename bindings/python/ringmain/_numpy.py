"""NumPy's view of events: dtypes from layouts, arrays over batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native

_DTYPES = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8",
           "f32": "f4", "f64": "f8", "bool": "?"}
STAMP = np.dtype([("time_ns", "i8"), ("sequence", "u8"), ("publisher", "u4"), ("time_from", "u4")])
_STAMP_OFFSET = 8  # after the sequence of the mailbox's own lane
_by_layout: dict[tuple[int, int, int], np.dtype[Any]] = {}


def _dtype_of_field(kind: str, unit: str, size: int, words: str) -> np.dtype[Any]:
    metadata: dict[str, str] = {"ringmain_unit": unit} if unit else {}
    if kind == "text":
        dtype = np.dtype([("size_and_cut", "u2"), ("bytes", f"S{size - 2}")])
        return np.dtype(dtype, metadata={**metadata, "ringmain": "text"})
    if kind == "name":
        metadata["ringmain"] = "name"
    if kind == "enum":
        metadata |= {"ringmain": "enum", "ringmain_enumerators": words}
    dtype = np.dtype("u4" if kind == "name" else f"u{size}" if kind == "enum" else _DTYPES[kind])
    return np.dtype(dtype, metadata=metadata) if metadata else dtype


def _structured(layout: _native.Layout, offset: int, size: int) -> np.dtype[Any]:
    key = (layout.hash, offset, size)
    found = _by_layout.get(key)
    if found is not None:
        return found
    names, formats, offsets = [], [], []
    for name, kind, unit, at, length, words in layout.fields:
        names.append(name)
        formats.append(_dtype_of_field(kind, unit, length, words))
        offsets.append(offset + at)
    if offset and "stamp" not in names:
        names.append("stamp")
        formats.append(STAMP)
        offsets.append(_STAMP_OFFSET)
    made = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    return _by_layout.setdefault(key, made)


def dtype_of(layout: _native.Layout) -> np.dtype[Any]:
    """The dtype of an event as it is published."""
    return _structured(layout, 0, layout.bytes)


def array_of(batch: _native.Batch) -> np.ndarray[Any, Any]:
    """The batch's memory as an array that holds it."""
    dtype = _structured(batch._layout, batch._payload_offset, batch._stride)
    return np.ndarray((len(batch),), dtype=dtype, buffer=memoryview(batch))


def rows_of(array: np.ndarray[Any, Any], layout: _native.Layout) -> np.ndarray[Any, Any]:
    """The array as back to back events of that layout: the array itself if it is that already."""
    dtype = dtype_of(layout)
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    if array.dtype.names is None:
        raise TypeError(f"{layout.name}: publish takes a structured array with the fields {dtype.names}")
    unknown = [name for name in array.dtype.names if name not in (dtype.names or ()) and name != "stamp"]
    if unknown:
        raise TypeError(f"{layout.name} has no field {unknown[0]!r}; it has {', '.join(dtype.names or ())}")
    rows = np.zeros(array.shape, dtype=dtype)
    kinds = {field[0]: (field[1], field[4]) for field in layout.fields}
    for name in array.dtype.names:
        if name in kinds:
            _write_column(rows[name], array[name], *kinds[name])
    return np.ascontiguousarray(rows)


def _write_column(to: np.ndarray[Any, Any], column: np.ndarray[Any, Any], kind: str, size: int) -> None:
    if kind == "name" and column.dtype.kind in "UO":
        words, where = np.unique(column, return_inverse=True)
        numbers = np.array([_native.name(str(word)) for word in words], dtype="u4")
        to[...] = numbers[where].reshape(column.shape)
    elif kind == "text" and column.dtype.kind == "S":
        lengths = np.char.str_len(column)
        to["bytes"] = column  # cut by NumPy where it is longer
        to["size_and_cut"] = np.minimum(lengths, size - 2) | np.where(lengths > size - 2, 0x8000, 0)
    else:
        to[...] = column
