"""How can we listen to TorchDynamo's own callbacks, and go on listening after a reset?

PyTorch has one handler with two plain lists, which torch._dynamo.reset() empties. One function of ours stands in each
list for all our listeners; the handler's clear() is wrapped on that one object, so that our functions stand
there again after it. Real events come while PyTorch holds its handler's lock: a listener must not compile.
"""

from __future__ import annotations

import inspect
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from ._callbacks import CallbackList, Handle

log = logging.getLogger("ringmain.torch")


class DynamoCallbacks:
    """The process's one link to torch._dynamo.callback.callback_handler; it stands while somebody listens."""

    def __init__(self) -> None:
        self.starts: CallbackList[[Any]] = CallbackList()
        self.ends: CallbackList[[Any]] = CallbackList()
        self.resets: CallbackList[[]] = CallbackList()
        self._handler: Any = None
        self._lock = threading.RLock()

    def connect(self) -> str:
        """Stands in PyTorch's lists from now on. Returns "" or why it cannot."""
        with self._lock:
            if self._handler is not None:
                return ""
            try:
                from torch._dynamo.callback import callback_handler
            except Exception as error:  # no torch, an older one, or one whose import fails
                return f"torch._dynamo.callback cannot be imported: {error}"
            missing = [name for name in ("register_start_callback", "register_end_callback", "clear", "start_callbacks",
                                         "end_callbacks") if not hasattr(callback_handler, name)]
            if missing:
                return f"this PyTorch's callback handler has no {', '.join(missing)}"
            self._handler = callback_handler
            self._stand()
            if not self._stands():
                self._handler = None
                return "this PyTorch's callback handler keeps its callbacks elsewhere"
            self._wrap_clear()
            return ""

    def lacks(self) -> str:
        """What this PyTorch does not give although it is connected."""
        if not self._stands():
            return "everything: somebody took our callbacks out of PyTorch's lists"
        reset = inspect.unwrap(sys.modules["torch._dynamo"].reset)
        if not {"callback_handler", "clear"} <= set(reset.__code__.co_names):
            return "resets, which only the ids tell"
        return ""

    def disconnect_if_idle(self) -> None:
        """Takes everything out of PyTorch again if nobody listens any more."""
        with self._lock:
            if self._handler is None or len(self.starts) or len(self.ends) or len(self.resets):
                return
            handler, self._handler = self._handler, None
            if vars(handler).get("clear") == self._clear:
                del handler.clear
            for calls, own in ((handler.start_callbacks, self._started), (handler.end_callbacks, self._ended)):
                while own in calls:
                    calls.remove(own)

    @property
    def connected(self) -> bool:
        return self._handler is not None

    def stand_again(self) -> None:
        """Puts ours back where something other than clear() took them out."""
        with self._lock:
            if self._handler is not None:
                self._stand()

    def _stand(self) -> None:
        handler = self._handler
        if self._started not in handler.start_callbacks:
            handler.register_start_callback(self._started)
        if self._ended not in handler.end_callbacks:
            handler.register_end_callback(self._ended)

    def _stands(self) -> bool:
        return self._started in self._handler.start_callbacks and self._ended in self._handler.end_callbacks

    def _wrap_clear(self) -> None:
        self._original_clear: Callable[[], None] = self._handler.clear
        self._handler.clear = self._clear

    def _clear(self) -> None:
        caller = sys._getframe(1)
        of_reset = caller.f_code.co_name == "reset" and caller.f_globals.get("__name__") == "torch._dynamo"
        try:
            self._original_clear()
        finally:
            self.stand_again()
            if of_reset:
                self.resets.fire(_said)

    def _started(self, args: Any) -> None:
        vetoes: list[Exception] = []
        self.starts.fire(lambda _, error: vetoes.append(error), args)
        if vetoes:
            raise vetoes[0]

    def _ended(self, args: Any) -> None:
        self.ends.fire(_said, args)


def leaving_exception() -> BaseException | None:
    """The exception that is leaving the install_callbacks() whose end callbacks are running, if one is.

    sys.exc_info() alone would also name what the program was handling when the compile began.
    """
    raised = sys.exc_info()[1]
    frame = sys._getframe(1)
    while raised is not None and frame is not None and frame.f_code.co_name != "install_callbacks":
        frame = frame.f_back  # type: ignore[assignment]
    step = raised.__traceback__ if raised is not None else None
    while step is not None:
        if step.tb_frame is frame:
            return raised
        step = step.tb_next
    return None


def _said(handle: Handle, error: Exception) -> None:
    log.error("Exception in %r, which listens to TorchDynamo", handle.call, exc_info=error)


dynamo_callbacks = DynamoCallbacks()
