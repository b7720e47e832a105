"""A channel, as who publishes holds it."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, _numpy
from ._types import EventType


class Channel:
    """One kind of event of a bus: how to publish it."""

    def __init__(self, native: _native.Channel) -> None:
        self._native = native
        self.type = EventType(native.layout)
        # Called most, so without a method of this class in between.
        self.publish = native.publish_function()  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def wanted(self) -> bool:
        """Is anybody listening? For skipping the work of making an event."""
        return self._native.wanted

    def publish(self, /, **fields: Any) -> _native.PublishResult:
        """Publishes one event, by its fields; fields left out read as in C++ (0 and "" in Python's own events).

        Holds the GIL, and never waits for a subscriber. True unless it was lost; TypeError, ValueError or
        OverflowError for what the event cannot hold.
        """
        return self._native.publish_function()(**fields)

    def publish_all(self, rows: np.ndarray[Any, Any]) -> _native.BatchResult:
        """Publishes the rows of a structured array, in order. Without a copy if its dtype is the channel's."""
        return self._native.publish_rows(_numpy.rows_of(np.atleast_1d(rows), self._native.layout))

    def __repr__(self) -> str:
        return f"<channel {self.name}>"
