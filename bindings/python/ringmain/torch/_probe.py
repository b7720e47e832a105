"""Does PyTorch's structured trace work as _tap.py supposes? We try it, with a record that no other handler sees.

PyTorch's own function is called to write a record with a name of ours. Our handler, the first of its logger, is asked
whether the record is wanted, and stops it by an exception as soon as it arrives.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

_NAME = "ringmain_probe"


class _Seen(BaseException):
    """The record is here, and goes no further."""


class TraceProbe:
    """One try. It ignores what other threads write meanwhile."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._asked: tuple[str | None, str | None] | None = None
        self._arrived = False

    def asked(self, name: str | None, artifact: str | None) -> bool:
        """Our list of handlers was asked for a record of this name. Is it the probe's?"""
        if threading.get_ident() != self._thread:
            return False
        self._asked = name, artifact
        return True

    def arrived(self, record: logging.LogRecord) -> None:
        """Raises if it is the probe's record."""
        metadata = getattr(record, "metadata", None)
        if isinstance(metadata, dict) and (_NAME in metadata or metadata.get("artifact", {}).get("name") == _NAME):
            self._arrived = True
            raise _Seen

    def run(self) -> tuple[str, str]:
        """Why the trace is not heard, and what it lacks if it is."""
        try:
            from torch._logging._internal import trace_structured, trace_structured_artifact
        except ImportError as error:
            return f"this PyTorch writes no structured trace: {error}", ""
        # With an id: without one PyTorch would write the stack, and the names of its files as records of their own.
        one = SimpleNamespace(compiled_autograd_id=None, frame_id=None, frame_compile_id=None)
        asked_record, record = self._one(lambda: trace_structured(_NAME, compile_id=one))
        asked_artifact, _ = self._one(lambda: trace_structured_artifact(_NAME, "string", compile_id=one))
        if not record:
            return "its records do not come to the logger torch.__trace", ""
        if asked_record != (_NAME, None):
            return "", "a choice: PyTorch builds every record, whoever listens"
        if asked_artifact != ("artifact", _NAME):
            return "", "a choice of artifacts: PyTorch builds all of them, whoever listens"
        return "", ""

    def _one(self, say: Callable[[], Any]) -> tuple[tuple[str | None, str | None] | None, bool]:
        self._asked, self._arrived = None, False
        try:
            say()
        except _Seen:
            pass
        return self._asked, self._arrived
