"""Who says how an operation ends, and when its caller waits for it? The future of PyTorch's Work, and the Work's wait().

A few Works of gloo have no future (sends, receives, reduce_scatter): their end is said where the caller has waited for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ._collectives import Collectives, Operation
from ._groups import ENDS_KNOWN


class _HandedOut(NamedTuple):
    work: weakref.ref[Any]
    operation: Operation
    ends: bool  # by its wait()


class Works:
    """The Works that Python was given and still has. It keeps none alive."""

    def __init__(self, collectives: Collectives, failed: Callable[[BaseException], None]) -> None:
        self._collectives = collectives
        self._failed = failed
        self._handed_out: dict[int, _HandedOut] = {}

    def follow(self, work: Any, operation: Operation, backend: str) -> bool:
        """The backend has taken it. False: its end will be known where Python waits for it. Never raises."""
        if backend not in ENDS_KNOWN or not operation.id:
            return True
        try:
            if work is None:
                operation.completed()  # the backend waited for it
                return True
            try:
                future = work.get_future()
            except RuntimeError:
                return False
            future.add_done_callback(operation)
        except Exception as error:
            self.lost(operation)
            self._failed(error)
        return True

    def lost(self, operation: Operation) -> None:
        operation.failed("its end could not be followed", "unknown")

    def hand_out(self, work: Any, operation: Operation, ends: bool) -> None:
        """To Python. `ends`: its wait() will say the end. Never raises."""
        if not ends and not self._collectives.waits_heard:
            return
        try:
            key = id(work)
            self._handed_out[key] = _HandedOut(weakref.ref(work, lambda _: self._dropped(key)), operation, ends)
        except Exception as error:
            self._failed(error)

    def _dropped(self, key: int) -> None:
        found = self._handed_out.pop(key, None)
        if found is not None and found.ends:
            found.operation.failed("nobody waited for it, and its Work does not tell", "unknown")

    def wait(self, original: Callable[..., Any], work: Any, *args: Any, **kwargs: Any) -> Any:
        """In the place of Work.wait()."""
        found = self._handed_out.get(id(work)) if self._handed_out else None
        if found is None or found.work() is not work or (not found.ends and getattr(work, "is_completed", bool)()):
            return original(work, *args, **kwargs)
        since_ns = found.operation.wait_began()
        try:
            said = original(work, *args, **kwargs)
        except BaseException as error:
            if found.ends and self._handed_out.pop(id(work), None) is found:
                found.operation.raised(str(error))
            raise
        else:
            if found.ends and self._handed_out.pop(id(work), None) is found:
                found.operation.completed()
            return said
        finally:
            found.operation.wait_ended(since_ns)
