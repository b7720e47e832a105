"""How can we hear TorchDynamo's structured trace without paying for what nobody wants?

PyTorch builds a record, its payload included, as soon as its trace logger has any handler; graphs as text cost much.
The one question that it asks before is whether the logger's list of handlers is empty. So our handler stands in a list
that answers for each record: while no other handler is there, by the record's name and by what is subscribed on the bus.

Whether this PyTorch asks that question, and of which list, is tried when we hook in (_probe.py).
"""

from __future__ import annotations

import json
import logging
import sys
import time
from types import FrameType
from typing import Any

from ._options import with_options
from ._probe import TraceProbe
from ._surface import Publishers, Surface

# Which channels need the record of this name. Names that are not here are not wanted by anybody.
_ANY = ("compile.>",)
RECORDS: dict[str, tuple[str, ...]] = {
    "dynamo_start": _ANY,
    "compilation_metrics": _ANY,
    "bwd_compilation_metrics": _ANY,
    "str": _ANY,  # the names of files, said once each
    "dynamo_output_graph": ("compile.graph", "compile.detail.code"),
    "dynamo_cpp_guards_str": ("compile.guard", "compile.detail.guard"),
    # PyTorch's phases also say when a backward begins, and which size is dynamic from now on.
    "chromium_event": ("compile.phase", "compile.backend", "compile.dynamic_shape", "compile.start", "compile.end"),
    "create_symbol": ("compile.dynamic_shape",),
    "create_unbacked_symbol": ("compile.dynamic_shape",),
    "symbolic_shape_specialization": ("compile.dynamic_shape",),
    "guard_added": ("compile.dynamic_shape",),
    "guard_added_fast": ("compile.dynamic_shape",),
}
_CACHE = ("compile.cache",)
ARTIFACTS: dict[str, tuple[str, ...]] = {
    "dynamo_graph_break_reason": ("compile.graph_break", "compile.stack"),
    "recompile_reasons": ("compile.recompile", "compile.guard", "compile.limit", "compile.stack"),
    "fx_graph_cache_hit": _CACHE,
    "fx_graph_cache_miss": _CACHE,
    "fx_graph_cache_bypass": _CACHE,
    "aotautograd_cache_hit": _CACHE,
    "aotautograd_cache_miss": _CACHE,
    "aotautograd_cache_bypass": _CACHE,
}
BYTECODE = ("_ORIGINAL_BYTECODE", "_MODIFIED_BYTECODE")  # after a function's name
CHANNELS = ("compile.start", "compile.end", "compile.graph", "compile.graph_break", "compile.guard",
            "compile.recompile", "compile.dynamic_shape", "compile.cache", "compile.backend", "compile.phase",
            "compile.limit", "compile.reset", "compile.metrics", "compile.stack", "compile.detail.guard",
            "compile.detail.code")


class TraceTap(Surface):
    """A handler on the logger torch.__trace."""

    name = "structured trace"

    def __init__(self, publishers: Publishers, at_first: Any = None) -> None:
        super().__init__(publishers)
        self.records = 0
        self.refused = 0  # not built, because nobody wanted them
        self._at_first = at_first  # called once, when the first record is about to be built
        self._logger = logging.getLogger("torch.__trace")
        self._handler = _Handler(self)
        self._probe: TraceProbe | None = None
        self._lacks = ""

    def hook_in(self) -> str:
        # In front: PyTorch's lazy handler leaves the list at the first record, while it is being walked along.
        self._logger.handlers = _Wanted(self, [self._handler, *self._logger.handlers])
        self._logger.setLevel(logging.DEBUG)  # as PyTorch does; before its own set-up it may not have come to it
        self._probe = TraceProbe()
        reason, self._lacks = self._probe.run()
        self._probe = None
        if reason:
            self.hook_out()
        else:
            self._say_known_names()
        return reason

    def lacks(self) -> str:
        return self._lacks

    def hook_out(self) -> None:
        self._logger.removeHandler(self._handler)
        if isinstance(self._logger.handlers, _Wanted):
            self._logger.handlers = list(self._logger.handlers)

    def wants(self, name: str, artifact: str | None) -> bool:
        channels = RECORDS.get(name, ()) if name != "artifact" else ARTIFACTS.get(artifact or "", ())
        if name == "artifact" and artifact is None:
            channels = _ANY  # its name is not known before it is built
        elif artifact is not None and artifact.endswith(BYTECODE):
            channels = ("compile.detail.code",)
        wanted = self.publishers.wanted
        for channel in CHANNELS if channels is _ANY else channels:
            if wanted(channel):
                return True
        return False

    def heard(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if not metadata:
            return
        self.records += 1
        if "dynamo_start" in metadata:
            metadata = with_options(metadata)
        payload = getattr(record, "payload", None)
        self.publishers.record(json.dumps(metadata, default=str), payload if isinstance(payload, str) else None,
                          time.monotonic_ns())

    def first(self) -> None:
        at_first, self._at_first = self._at_first, None
        if at_first is not None:
            at_first()

    def _say_known_names(self) -> None:
        """File names are said once in a process; those from before us are still in PyTorch's table."""
        table = getattr(sys.modules.get("torch._logging.structured"), "INTERN_TABLE", None)
        if not isinstance(table, dict):
            self._lacks = "; ".join(filter(None, [self._lacks, "the names of files that were said before attach()"]))
            return
        for name, number in list(table.items()):
            self.publishers.record(json.dumps({"str": [name, number]}), None, time.monotonic_ns())


class _Handler(logging.Handler):
    def __init__(self, tap: TraceTap) -> None:
        super().__init__(logging.DEBUG)
        self._tap = tap

    def emit(self, record: logging.LogRecord) -> None:
        if self._tap._probe is not None:
            self._tap._probe.arrived(record)
        try:
            self._tap.heard(record)
        except Exception as error:  # what leaves here would leave the user's call
            self._tap.failed(error)


class _Wanted(list[logging.Handler]):
    """The trace logger's handlers; as a truth value: does anybody want the record that is about to be built?"""

    def __init__(self, tap: TraceTap, handlers: list[logging.Handler]) -> None:
        super().__init__(handlers)
        self._tap = tap

    def __bool__(self) -> bool:
        try:
            return self._wanted(sys._getframe(1))
        except Exception as error:
            self._tap.failed(error)
            return len(self) > 0

    def _wanted(self, asking: FrameType) -> bool:
        tap = self._tap
        named, name, artifact = _asked_for(asking)
        if tap._probe is not None and tap._probe.asked(name, artifact):
            return True
        if len(self) != 1 or self[0] is not tap._handler:
            tap.first()
            return len(self) > 0  # another one is there: PyTorch as without us
        if not named:
            # The partitioner asks in order to gather what only a record of no interest here would hold.
            return bool(asking.f_globals.get("__name__") != "torch._functorch.partitioners")
        tap.first()
        if name is None or tap.wants(name, artifact):
            return True
        tap.refused += 1
        return False


def _asked_for(asking: FrameType) -> tuple[bool, str | None, str | None]:
    """Is it the function that builds records that asks, for which record, and for an artifact of which name?"""
    if asking.f_code.co_name != "trace_structured":
        return False, None, None
    name = asking.f_locals.get("name")
    caller = asking.f_back
    artifact = None
    if name == "artifact" and caller is not None and caller.f_code.co_name == "trace_structured_artifact":
        artifact = caller.f_locals.get("name")
    return True, name if isinstance(name, str) else None, artifact
