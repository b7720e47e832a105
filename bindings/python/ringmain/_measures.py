"""Which fields of an event are figures, and which say what it is about? Numbers with the units ns, bytes and count, and all that
have a fraction, are figures; ids, addresses, codes and whole numbers without a unit are not, nor moments and ranks in an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _native

Array = np.ndarray[Any, Any]
_UNITS = ("ns", "bytes", "count")
_NO_FIGURES = frozenset(("began_ns", "ended_ns", "armed_ns", "first_ns", "last_ns", "since_ns", "gpu_began", "gpu_ended", "gpu_began_ns",
                         "group_start_ns", "deadline_ns", "sequence", "p2p_sequence", "micro_batch", "group_size", "depth", "look", "step"))
# By which an event's figures are told apart; the texts of names are few, and kept by the process anyway.
KINDS_OF = ("op", "phase", "func", "api", "name")


class Figure(NamedTuple):
    name: str
    unit: str


class Shape:
    """What a sink has to know of an event type."""

    def __init__(self, layout: _native.Layout, chosen: Sequence[str] | None = None) -> None:
        fields = {name: (kind, unit, words) for name, kind, unit, _, _, words in layout.fields}
        numbers = {name for name, (kind, _, _) in fields.items() if kind[0] in "uif" or kind == "bool"}
        if chosen is None:
            names: Iterable[str] = [name for name in fields if name in numbers and name not in _NO_FIGURES and
                                    (fields[name][0][0] == "f" or fields[name][1] in _UNITS)]
        else:
            wrong = [name for name in chosen if name not in numbers]
            if wrong:
                raise ValueError(f"{layout.name} has no number {wrong[0]!r}; it has {', '.join(sorted(numbers)) or 'none'}")
            names = chosen
        self.figures = [Figure(name, fields[name][1]) for name in names]
        self.names = [name for name, (kind, _, _) in fields.items() if kind == "name"]
        self.enumerators = {name: words.split(",") for name, (kind, _, words) in fields.items() if kind == "enum" and words}
        # Of training: NCCL's proxies count steps of their own.
        self.has_step = "step" in fields and fields["step"][0] in ("u64", "i64", "u32", "i32") and fields["step"][1] != "count"
        self.kind_of = next((name for name in KINDS_OF if name in self.names), "")
        words = self.enumerators.get("edge", [])
        self.edges = words if "begin" in words and "end" in words else []

    def at_edge(self, rows: Array, edge: str) -> Array:
        """Which rows say that; of events without edges none is a begin, and all are ends."""
        if not self.edges:
            return np.full(len(rows), edge == "end")
        return np.asarray(rows["edge"] == self.edges.index(edge))


def known(figure: Figure, values: Array) -> Array:
    """Which of the values are any: a time below 0 is one that nobody knows, and a fraction may be NaN or infinite."""
    if values.dtype.kind == "f":
        return np.isfinite(values)
    return values >= 0 if figure.unit == "ns" else np.ones(len(values), bool)
