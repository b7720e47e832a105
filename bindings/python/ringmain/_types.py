"""Event types: what an event's fields are, from C++, a dataclass or a NumPy dtype."""

from __future__ import annotations

import dataclasses
import enum
import typing
from typing import Any, Callable, TypeVar, dataclass_transform

import numpy as np

from . import _check, _native, _numpy

T = TypeVar("T")
Field = tuple[str, str, str, int, int, str]  # name, kind, unit, offset, bytes, enumerators

EVENT_BYTES_MAX = 1024
NAME_BYTES_MAX = 255
KIND_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8,
              "bool": 1, "name": 4}
KIND_OF_DTYPE = {"u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
                 "f4": "f32", "f8": "f64", "b1": "bool"}


class Unit(str, enum.Enum):
    """What a number counts: shown by sinks. ``Annotated[int, Unit.BYTES]``."""

    NONE = ""
    BYTES = "bytes"
    NS = "ns"
    ADDRESS = "address"
    COUNT = "count"
    DEVICE = "device"
    STREAM = "stream"
    ID = "id"


class Text:
    """Text inside the event, cut at ``size - 2`` bytes: ``Annotated[str, Text(64)]``. A plain ``str`` is a name: four
    bytes in the event, its text kept once for the process, up to 64 KiB."""

    def __init__(self, size: int) -> None:
        size = _check.whole("size", size, 8, EVENT_BYTES_MAX)
        if size % 8 or not 8 <= size <= EVENT_BYTES_MAX:
            raise ValueError(f"a text has 8, 16, 24 … 1024 bytes, and not {size}")
        self.size = size

    def __repr__(self) -> str:
        return f"Text({self.size})"


def name(text: str) -> int:
    """The number of a text as name fields hold it; the same text always has the same number."""
    return _native.name(_check.text("text", text))


def name_text(number: int) -> str:
    """The text of such a number."""
    return _native.name_text(_check.whole("number", number, 0, 2**32 - 1))


class EventType:
    """The name and fields of an event, and so of its channel."""

    def __init__(self, layout: _native.Layout) -> None:
        self._layout = layout

    @staticmethod
    def of(name: str, fields: np.dtype[Any] | type) -> EventType:
        """Of a NumPy structured dtype, or of a dataclass."""
        if isinstance(fields, np.dtype):
            described = _fields_of_dtype(fields)
            return _define(name, described, _offsets_of(fields, described))
        return _define(name, _fields_of_class(name, fields))

    @property
    def name(self) -> str:
        return self._layout.name

    @property
    def fields(self) -> list[Field]:
        """(name, kind, unit, offset, bytes, enumerators) of each field."""
        return self._layout.fields

    @property
    def dtype(self) -> np.dtype[Any]:
        """As publish() takes it; the arrays of batches have the same fields, and ``stamp``."""
        return _numpy.dtype_of(self._layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventType) and other._layout.hash == self._layout.hash

    def __hash__(self) -> int:
        return hash(self._layout.hash)

    def __repr__(self) -> str:
        return f"<event {self.name}({', '.join(field[0] for field in self.fields)})>"


@dataclass_transform()
def event(name: str) -> Callable[[type[T]], type[T]]:
    """Makes a class an event of that channel, and a dataclass if it is not one yet.

    Fields are annotated with int (64 bits), float, bool, str, an IntEnum, a NumPy scalar type such as np.uint32, or
    Annotated[one of these, Unit.BYTES, Text(64), "u32"].
    """

    if isinstance(name, type):
        raise TypeError(f"event wants a name: put @ringmain.event('its.name') on {name.__name__}")
    check_name(name)

    def make(cls: type[T]) -> type[T]:
        made = cls if dataclasses.is_dataclass(cls) else dataclasses.dataclass(cls)
        type_ = _version_of(name, made)
        setattr(made, "__ringmain_event__", type_)
        setattr(made, "__ringmain_layout__", type_._layout)  # where bus.publish() looks
        return made

    return make


@dataclasses.dataclass
class _Versions:
    """The event types that one class, known by its module and name, has had."""

    of: tuple[str, str]
    types: list[EventType]
    newest: EventType


_versions: dict[str, _Versions] = {}


def _version_of(name: str, cls: type) -> EventType:
    """A channel holds one type for ever: a class whose fields were changed, as notebooks do, gets one beside it, "its.name@2",
    which patterns for "its.name" match too."""
    made = EventType.of(name, cls)
    of = (cls.__module__, cls.__qualname__)
    known = _versions.get(name)
    if known is None:
        _versions[name] = _Versions(of, [made], made)
    if known is None or known.of != of:  # another class: a conflict where both are used on one bus
        return made
    same = [type_ for type_ in known.types if type_.fields == made.fields]
    if not same:
        same = [EventType.of(f"{name}@{len(known.types) + 1}", cls)]
        known.types += same
    if known.newest is not same[0]:
        known.newest = same[0]
        _native.names_changed()
    return known.newest


def newest_of(name: str) -> _native.Layout | None:
    """What a name stands for if its class was changed; None if it was not."""
    known = _versions.get(name)
    return known.newest._layout if known is not None and len(known.types) > 1 else None


def declared(name: str) -> _native.Layout | None:
    """The event type that a class of this process gives a name, whether a channel has it already or not."""
    known = _versions.get(name)
    return None if known is None else known.newest._layout


def event_type_of(cls: type) -> EventType | None:
    """The event type that event() made of that very class."""
    found = cls.__dict__.get("__ringmain_event__")
    return found if isinstance(found, EventType) else None


def check_name(name: str) -> None:
    _check.text("the event's name", name)
    if not name:
        raise ValueError("the event's name is empty; give it one, as in train.step")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise ValueError(f"the event's name has more than {NAME_BYTES_MAX} bytes; shorten it")
    if any(not token for token in name.split(".")):
        raise ValueError(f"event {name!r} has an empty token; put one word between two dots")
    if any(c in "*>" or c.isspace() for c in name):
        raise ValueError(f"event {name!r} has a blank, * or > in its name; leave them out")


def check_pattern(what: str) -> None:
    """Refuses a pattern that could never match, so that nobody waits for events that cannot come."""
    tokens = what.split(".")
    if any(token != "*" and "*" in token for token in tokens):
        raise ValueError(f"pattern {what!r} has a * beside other characters; * stands for one whole word between dots, as in train.*")
    if any(">" in token for token in tokens[:-1]) or (">" in tokens[-1] and tokens[-1] != ">"):
        raise ValueError(f"pattern {what!r} has a > that is not its last word; > stands for all words that follow, as in train.>")
    check_name(what.replace("*", "x").replace(">", "x"))


def _offsets_of(dtype: np.dtype[Any], fields: list[tuple[str, str, str, int, str]]) -> dict[str, int]:
    """Where the dtype lays its fields, if an event's may lie there: aligned, apart, and each of the size it has in an event."""
    lies = {name: (of[0].itemsize, of[1]) for name, of in (dtype.fields or {}).items()}
    offsets: dict[str, int] = {}
    end = 0
    for field, kind, _, size, _ in sorted(fields, key=lambda described: lies[described[0]][1]):
        itemsize, offset = lies[field]
        if itemsize != size or offset < end or offset % (2 if kind == "text" else size):
            return {}
        offsets[field], end = offset, offset + size
    return offsets


def _define(name: str, fields: list[tuple[str, str, str, int, str]], offsets: dict[str, int] | None = None) -> EventType:
    """Lays (name, kind, unit, bytes, enumerators) out there, or as C++ would."""
    check_name(name)
    if not fields:
        raise ValueError(f"event {name!r} has no field; give it one")
    placed: list[Field] = []
    offset, widest = 0, 1
    for field, kind, unit, size, words in fields:
        aligned = 2 if kind == "text" else size
        at = offsets[field] if offsets else -(-offset // aligned) * aligned
        placed.append((field, kind, unit, at, size, words))
        offset, widest = max(offset, at + size), max(widest, aligned)
    total = -(-offset // widest) * widest
    if total > EVENT_BYTES_MAX:
        raise ValueError(f"event {name!r} has {total} bytes; an event has at most {EVENT_BYTES_MAX}")
    return EventType(_native.define(name, total, placed))


def _fields_of_dtype(dtype: np.dtype[Any]) -> list[tuple[str, str, str, int, str]]:
    if dtype.names is None or dtype.fields is None:
        raise TypeError(f"{dtype} has no fields; an event is a structured dtype, as in np.dtype([('step', 'u8')])")
    return [_field_of_dtype(field, dtype.fields[field][0]) for field in dtype.names]


def _field_of_dtype(field: str, dtype: np.dtype[Any]) -> tuple[str, str, str, int, str]:
    metadata: dict[str, Any] = dict(dtype.metadata or {})
    unit = str(metadata.get("ringmain_unit", ""))
    kind = metadata.get("ringmain")
    if kind == "name":
        return field, "name", unit, 4, ""
    if kind == "enum":
        return field, "enum", unit, dtype.itemsize, str(metadata.get("ringmain_enumerators", ""))
    if dtype.kind == "S":
        return field, "text", unit, max(8, -(-(dtype.itemsize + 2) // 8) * 8), ""
    if dtype.kind == "U":
        return field, "name", unit, 4, ""
    if dtype.kind == "V" and kind == "text":
        return field, "text", unit, dtype.itemsize, ""
    found = KIND_OF_DTYPE.get(dtype.str[1:]) if dtype.str[0] != ">" else None
    if found is None:
        raise TypeError(f"field {field!r} is of dtype {dtype}; an event holds integers, floats, bools, "
                        "'S…' (text) and 'U…' (names), in the machine's byte order")
    return field, found, unit, KIND_BYTES[found], ""


def _fields_of_class(name: str, cls: type) -> list[tuple[str, str, str, int, str]]:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls!r} is neither a dataclass nor a NumPy structured dtype")
    hints = typing.get_type_hints(cls, include_extras=True)
    return [_field_of_hint(name, field.name, hints[field.name]) for field in dataclasses.fields(cls)]


def _field_of_hint(event_name: str, field: str, hint: Any) -> tuple[str, str, str, int, str]:
    unit, size, kind = "", 0, ""
    if typing.get_origin(hint) is typing.Annotated:
        hint, *notes = typing.get_args(hint)
        for note in notes:
            if isinstance(note, Unit):
                unit = note.value
            elif isinstance(note, Text):
                size = note.size
            elif isinstance(note, str) and note in KIND_BYTES:
                kind = note
    if isinstance(hint, type):
        if issubclass(hint, enum.IntEnum):
            return field, "enum", unit, 4, _words_of(hint)
        if issubclass(hint, np.generic):
            kind = kind or KIND_OF_DTYPE.get(np.dtype(hint).str[1:], "")
        elif issubclass(hint, str):
            return (field, "text", unit, size, "") if size else (field, "name", unit, 4, "")
        else:
            kind = kind or {bool: "bool", int: "i64", float: "f64"}.get(hint, "")
    if not kind:
        raise TypeError(f"{event_name}: field {field!r} is a {hint!r}; use int, float, bool, str, an IntEnum or a NumPy "
                        "scalar type")
    return field, kind, unit, KIND_BYTES[kind], ""


def _words_of(words: type[enum.IntEnum]) -> str:
    """The names of 0, 1, 2 …, or nothing where the values are others."""
    by_value = {int(word): word.name for word in words}
    if sorted(by_value) != list(range(len(by_value))):
        return ""
    return ",".join(by_value[value].lower() for value in range(len(by_value)))
