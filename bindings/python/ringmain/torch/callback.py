"""torch._dynamo.callback, for code that moves over by changing its import.

The same names, the same outermost pair: nested and concurrent compiles have one start and one end. What is mended: register
and remove from any thread, also inside a callback; no lock is held while callbacks run; if a start callback raises it
vetoes the compile, but all others are called and the end says `cancelled`; an end callback that raises
is logged and changes nothing; torch._dynamo.reset() leaves registrations alone; the arguments say more.

Real compiles come from PyTorch's own handler, which holds its lock meanwhile: there a callback must not compile.
"""

from __future__ import annotations

import enum
import logging
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ._callbacks import CallbackList, Handle, LiveCalls
from ._dynamo import dynamo_callbacks, leaving_exception

log = logging.getLogger("ringmain.torch")

_IDS = re.compile(r"(?:!?(?P<autograd>\d+)/)?(?P<frame>\d+)/(?P<compile>\d+)\Z|!(?P<alone>\d+)\Z")


try:  # PyTorch's own, so that code which compares with them goes on
    from torch._dynamo.callback import CallbackArgs as _ArgsOfTorch
    from torch._dynamo.callback import CallbackTrigger
except Exception:  # no PyTorch here, or one without them

    class CallbackTrigger(enum.Enum):  # type: ignore[no-redef]
        DYNAMO = 1
        LAZY_BACKWARD = 2
        TRITON_AUTOTUNING = 3
        CUDAGRAPH_RECORDING = 4

    @dataclass
    class _ArgsOfTorch:  # type: ignore[no-redef]
        callback_trigger: CallbackTrigger
        compile_id: str


class Outcome(enum.Enum):
    """How a compile ended, as far as the callbacks' own level can tell."""

    running = "running"
    completed = "completed"
    failed = "failed"
    cancelled = "cancelled"  # a start callback vetoed it


@dataclass(eq=False)
class CallbackArgs(_ArgsOfTorch):  # type: ignore[misc]
    """What a callback is told: PyTorch's arguments and more. PyTorch's two fields, callback_trigger and compile_id, alone count
    when two are compared, with PyTorch's own too, and are alone shown."""

    outcome: Outcome = field(default=Outcome.running, repr=False)
    exception_type: str = field(default="", repr=False)
    time_ns: int = field(default_factory=time.monotonic_ns, repr=False)
    thread_id: int = field(default_factory=threading.get_native_id, repr=False)
    frame_id: int | None = field(init=False, default=None, repr=False)
    frame_compile_id: int | None = field(init=False, default=None, repr=False)
    autograd_id: int | None = field(init=False, default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ArgsOfTorch):
            return NotImplemented
        return bool((self.callback_trigger, self.compile_id) == (other.callback_trigger, other.compile_id))

    __hash__ = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        found = _IDS.match(str(self.compile_id))
        if found:
            number = {name: int(text) for name, text in found.groupdict().items() if text is not None}
            self.frame_id = number.get("frame")
            self.frame_compile_id = number.get("compile")
            self.autograd_id = number.get("autograd", number.get("alone"))


Callback = Callable[[CallbackArgs], Any]
C = TypeVar("C", bound=Callback)


class CompilationCallbackHandler:
    """Start and end callbacks. Lists that it is given stay the caller's, and are followed. `listens` makes it hear PyTorch's own
    compiles once somebody has registered."""

    def __init__(self, start_callbacks: list[Callback] | None = None, end_callbacks: list[Callback] | None = None, *,
                 listens: bool = False) -> None:
        self._starts: CallbackList[[CallbackArgs]] = CallbackList(start_callbacks)
        self._ends: CallbackList[[CallbackArgs]] = CallbackList(end_callbacks)
        self._observers: list[Handle] = []
        self.__pending_callbacks_counter = 0  # PyTorch's name for it, which its tests use
        self._lock = threading.Lock()  # for the count and the observers, never across a callback
        self._listens = listens
        self._real = threading.local()

    def __repr__(self) -> str:
        return f"<compile callbacks: {len(self.start_callbacks)} at starts, {len(self.end_callbacks)} at ends>"

    @property
    def start_callbacks(self) -> LiveCalls:
        return LiveCalls(self._starts, self._listen)

    @start_callbacks.setter
    def start_callbacks(self, calls: Iterable[Callback]) -> None:
        self.start_callbacks.replace(calls)

    @property
    def end_callbacks(self) -> LiveCalls:
        return LiveCalls(self._ends, self._listen)

    @end_callbacks.setter
    def end_callbacks(self, calls: Iterable[Callback]) -> None:
        self.end_callbacks.replace(calls)

    @property
    def pending(self) -> int:
        """How many install_callbacks() are open."""
        return self.__pending_callbacks_counter

    def register_start_callback(self, callback: C) -> C:
        self.subscribe_start(callback)
        return callback

    def register_end_callback(self, callback: C) -> C:
        self.subscribe_end(callback)
        return callback

    def subscribe_start(self, callback: Callback) -> Handle:
        """As register_start_callback, with a handle in place of the callback."""
        handle = self._starts.add(callback)
        self._listen()
        return handle

    def subscribe_end(self, callback: Callback) -> Handle:
        handle = self._ends.add(callback)
        self._listen()
        return handle

    def remove_start_callback(self, callback: Callback) -> bool:
        """Removes the first that equals this one; False if there is none (PyTorch raises ValueError)."""
        return _remove(self._starts, callback)

    def remove_end_callback(self, callback: Callback) -> bool:
        return _remove(self._ends, callback)

    def run_start_callbacks(self, args: CallbackArgs) -> None:
        """Calls all; then raises the first of their exceptions, if any: a veto."""
        vetoes: list[Exception] = []
        self._starts.fire(lambda _, error: vetoes.append(error), args)
        for error in vetoes[1:]:
            log.error("Exception in a start callback, after another one's", exc_info=error)
        if vetoes:
            raise vetoes[0]

    def run_end_callbacks(self, args: CallbackArgs) -> None:
        """Calls all; what they raise is logged."""
        self._ends.fire(_log_end, args)

    @contextmanager
    def install_callbacks(self, trigger: CallbackTrigger, compile_id: str) -> Generator[None, None, None]:
        """The outermost of all that are open runs the start callbacks, the last one that leaves the end callbacks."""
        args = CallbackArgs(trigger, compile_id)
        with self._lock:
            self.__pending_callbacks_counter += 1
            outermost = self.__pending_callbacks_counter == 1
        outcome, raised = Outcome.cancelled, ""
        try:
            if outermost:
                self.run_start_callbacks(args)
            outcome = Outcome.failed
            yield
            outcome = Outcome.completed
        except BaseException as error:
            raised = type(error).__qualname__
            raise
        finally:
            with self._lock:
                if self.__pending_callbacks_counter <= 0:  # somebody wrote to it
                    raise AssertionError("Pending callbacks counter cannot become negative.")
                self.__pending_callbacks_counter -= 1
                last = self.__pending_callbacks_counter == 0
            if last:
                self.run_end_callbacks(replace(args, outcome=outcome, exception_type=raised,
                                               time_ns=time.monotonic_ns()))

    def clear(self) -> None:
        """Removes all callbacks, also while compiles are pending: when it returns, none of them is running."""
        self._starts.clear()
        self._ends.clear()
        with self._lock:
            observers, self._observers = self._observers, []
        for handle in observers:
            handle.remove()
        dynamo_callbacks.disconnect_if_idle()

    def _listen(self) -> None:
        if not self._listens:
            return
        with self._lock:
            if not self._observers:
                self._observers = [dynamo_callbacks.starts.add(self._real_start),
                                   dynamo_callbacks.ends.add(self._real_end)]
        reason = dynamo_callbacks.connect()
        if reason:
            log.debug("compile callbacks hear no compiles of PyTorch: %s", reason)

    def _real_start(self, args: Any) -> None:
        self._real.vetoed = True
        self.run_start_callbacks(_ours(args))
        self._real.vetoed = False

    def _real_end(self, args: Any) -> None:
        vetoed, self._real.vetoed = getattr(self._real, "vetoed", False), False
        raised = leaving_exception()
        if raised is None:
            self.run_end_callbacks(_ours(args, Outcome.completed))
        else:
            self.run_end_callbacks(_ours(args, Outcome.cancelled if vetoed else Outcome.failed,
                                         type(raised).__qualname__))


def _remove(calls: CallbackList[[CallbackArgs]], callback: Callback) -> bool:
    handle = calls.find(callback)
    if handle is None:
        log.debug("%r is not registered: nothing removed", callback)
        return False
    return handle.remove()


def _log_end(handle: Handle, error: Exception) -> None:
    log.error("Exception in the end callback %r", handle.call, exc_info=error)


def _ours(args: Any, outcome: Outcome = Outcome.running, exception_type: str = "") -> CallbackArgs:
    """PyTorch's arguments as ours."""
    return CallbackArgs(args.callback_trigger, args.compile_id, outcome, exception_type)


callback_handler = CompilationCallbackHandler(listens=True)


def on_compile_start(callback: C) -> C:
    """Decorator: calls the function when a compile starts."""
    return callback_handler.register_start_callback(callback)


def on_compile_end(callback: C) -> C:
    """Decorator: calls the function when a compile has ended."""
    return callback_handler.register_end_callback(callback)
