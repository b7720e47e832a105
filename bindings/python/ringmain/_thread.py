"""The thread that calls callbacks: made by Python, so that debuggers and threading.local know it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from . import _native, _raised

_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def start(dispatcher: _native.Dispatcher, name: str) -> None:
    # A daemon: at_exit() ends it, after it has heard what there was.
    thread = threading.Thread(target=_native._run_dispatcher, args=(_native._capsule(dispatcher),),
                              name=f"{name}-dispatcher", daemon=True)
    _threads.add(thread)
    thread.start()


def call_hook(name: str, callback: Callable[..., object], arguments: tuple[object, ...], raised: Callable[[], bool],
              over: Callable[[], None]) -> None:
    """In a thread of its own, which the interpreter's exit cuts off if the hook is stuck. `raised` says whether that is to be
    logged."""
    def call() -> None:
        _native._begin_abort_hook()
        try:
            callback(*arguments)
        except BaseException as error:
            if raised():
                _raised.log(name, error)
        finally:
            over()

    threading.Thread(target=call, name=f"hook {name}", daemon=True).start()


def at_exit() -> None:
    """Ends callbacks while the interpreter can still run them, and its threads may still ask for the GIL."""
    _native.shut_down()
    for thread in list(_threads):
        thread.join(1.0)  # it has ended, unless a callback never returns
    if threading.active_count() > 1:
        _native.expect_leaks()  # of what daemon threads hold when the interpreter cuts them off
