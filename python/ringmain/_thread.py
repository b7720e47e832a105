"""The thread that calls callbacks back: Python's own, so that debuggers and threading.local know it."""

import threading

from . import _native


def start(dispatcher: _native.Dispatcher, name: str) -> None:
    # A daemon: the interpreter's exit ends it itself, when it has heard what there was.
    threading.Thread(target=_native._run_dispatcher, args=(_native._capsule(dispatcher),),
                     name=f"{name}-dispatcher", daemon=True).start()
