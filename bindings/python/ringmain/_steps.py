"""In which training step was an event published?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from . import _check, _native

_ROW = np.dtype({"names": ["step", "phase", "micro_batch", "inside"], "formats": ["u8", "u4", "u4", "?"],
                 "offsets": [0, 8, 12, 16], "itemsize": 24})


class StepPlace(NamedTuple):
    """Where the training loop was."""

    step: int
    phase: str  # "": in none
    micro_batch: int  # from 1; 0: in none


class StepFollow:
    """Follows the steps of a bus from `bus.follow_steps()` to `close()`, or as a context manager.

    A step that had begun before is not guessed at, and what lies more than 4,096 edges of `train.step` back is not
    known. Publishing such an edge costs a look at the clock and an extra lock; events cost nothing. Threads: any.
    """

    def __init__(self, native: _native.StepLog, bus: str) -> None:
        self._native = native
        self._bus = bus
        self._closed = False

    def of(self, events: _native.Batch) -> np.ndarray[Any, Any]:
        """For each event: `step`, `phase` (a name's number, see `name_text`), `micro_batch`, and whether it is `inside` one."""
        _check.instance("events", events, _native.Batch, "a batch, as callbacks get it")
        return np.frombuffer(self._native.of(events), dtype=_ROW)

    def at(self, event: _native.Record) -> StepPlace | None:
        """Where the loop was when that event was published, on whichever thread. None: in no known step, or heard inline."""
        _check.instance("event", event, _native.Record, "an event of a batch")
        if event.stamp is None:  # inline: it is being said
            return None
        row = np.frombuffer(self._native.of_stamp(event.stamp), dtype=_ROW)[0]
        if not row["inside"]:
            return None
        return StepPlace(int(row["step"]), _native.name_text(int(row["phase"])), int(row["micro_batch"]))

    def close(self) -> None:
        self._closed = True
        self._native.close()

    def __repr__(self) -> str:
        return f"<follows the steps of bus {self._bus!r}{', closed' if self._closed else ''}>"

    def __enter__(self) -> StepFollow:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()


def around(scope: _native.StepScope, call: Callable[..., Any]) -> Callable[..., Any]:
    """`@bus.step(phase="forward")` on a function: each of its calls is a scope."""
    if not callable(call):
        raise TypeError(f"step() as a decorator takes a function, and not {call!r}")

    @functools.wraps(call)
    def inside(*arguments: Any, **named: Any) -> Any:
        with scope._again():
            return call(*arguments, **named)

    return inside
