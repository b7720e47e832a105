"""A door: a unix socket at which this process answers `ringmain door`, also while a thread holds the GIL."""

from __future__ import annotations

import os
from types import TracebackType

from . import _native


class Door:
    """Keeps the process's door open; it closes with the last of them, and one that RINGMAIN_DOOR opened stays. In a forked
    child it is not there. Threads: one at a time."""

    def __init__(self, native: _native.Door) -> None:
        if not isinstance(native, _native.Door):
            raise TypeError("a door is opened by ringmain.open_door()")
        self._native = native

    @property
    def path(self) -> str:
        """The socket; "" once it is closed."""
        return self._native.path

    def close(self) -> None:
        """Waits for an answer that is being made, for a few seconds at most."""
        self._native.close()

    def __enter__(self) -> Door:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<door {self.path or 'closed'}>"


def open_door(folder: str | os.PathLike[str] | None = None) -> Door:
    """Opens the process's door, or gives another handle of it: `ringmain door` then tells its figures, has its recorders
    write dumps, and shows the Python stacks of all its threads. A folder is made, and must be a whole path; without one it
    is the one that RINGMAIN_DOOR names, else the user's runtime folder, else /dev/shm. OSError: no folder, socket or thread
    can be had. ValueError: it is open in another folder."""
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"folder is {folder!r}; give a path, or nothing")
    path = "" if folder is None else os.fsdecode(folder)
    if "\0" in path or any(0xd800 <= ord(c) < 0xe000 for c in path):
        raise ValueError(f"folder is {folder!r}, which no folder is called; give a whole path")
    return Door(_native.open_door(path))
