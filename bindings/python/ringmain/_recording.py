"""What a process published last, in a file that SIGKILL leaves: Bus.record()."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from . import _check, _native

_MOST = 2**64 - 1


class Recording:
    """A recording that Bus.record() began. It goes on until reset(), or until its bus is closed or gone; dropping it changes
    nothing. Threads: any."""

    def __init__(self) -> None:
        raise TypeError("a recording is what bus.record(…) returns")

    @classmethod
    def _of(cls, native: _native.Recording, patterns: tuple[str, ...]) -> Recording:
        made = cls.__new__(cls)
        made._native, made.patterns = native, patterns
        return made

    _native: _native.Recording
    patterns: tuple[str, ...]

    @property
    def path(self) -> str:
        """The file, for `ringmain post-mortem`; "": the record is in the process's memory only. Also known after the end."""
        return self._native.path

    @property
    def complaint(self) -> str:
        """Why it is in memory only, and how to mend it, in one sentence; or ""."""
        return self._native.complaint

    @property
    def recording(self) -> bool:
        """Is what is published still recorded? False after its end, and in a forked child, whose bus is the parent's."""
        return self._native.goes_on

    def reset(self) -> None:
        """When it has returned, nothing is recorded any more, and the file says that it was closed in order. Waits, without the GIL,
        for threads that are in the middle of a record. Again, or in a forked child: nothing."""
        self._native.end()

    close = reset

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.reset()

    def __repr__(self) -> str:
        where = self.path or "memory only"
        return f"<recording of {','.join(self.patterns)!r}, {where}{'' if self.recording else ', ended'}>"


def begin(bus: _native.NativeBus, patterns: str | Iterable[str], folder: str | os.PathLike[str] | None, file_bytes: int,
          ring_bytes: int, files_kept: int | None) -> Recording:
    words = _words_of(patterns)
    if not all(map(_is_utf8, words)):
        raise ValueError(f"patterns is {patterns!r}, which no channel is called; give a str such as 'collective.>,train.*', or several")
    if files_kept is not None:
        files_kept = _check.whole("files_kept", files_kept, 0, _MOST)
    native = _native.record(bus, ",".join(words), _folder_of(folder), _check.whole("file_bytes", file_bytes, 0, _MOST),
                            _check.whole("ring_bytes", ring_bytes, 0, _MOST), _MOST if files_kept is None else files_kept)
    if native.complaint:
        warnings.warn(native.complaint, RuntimeWarning, stacklevel=3)
    return Recording._of(native, words)


def _is_utf8(text: str) -> bool:
    return not any(0xd800 <= ord(character) < 0xe000 for character in text)


def _words_of(patterns: Any) -> tuple[str, ...]:
    if isinstance(patterns, str):
        return tuple(patterns.split(","))
    if not isinstance(patterns, Iterable) or isinstance(patterns, (bytes, bytearray)):
        raise TypeError(f"patterns is {patterns!r}; give a str such as 'collective.>,train.*', or several")
    words = tuple(_check.text("a pattern", word) for word in patterns)
    return tuple(",".join(words).split(","))


def _folder_of(folder: Any) -> str:
    if folder is None:
        return ""
    try:
        found = os.fsdecode(folder)
    except TypeError:
        raise TypeError(f"folder is {folder!r}; give a path, or None for where `ringmain doctor` says") from None
    if not found or "\0" in found or not _is_utf8(found):
        raise ValueError(f"folder is {folder!r}; give a path, or None for where `ringmain doctor` says")
    return found
