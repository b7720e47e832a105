"""Events as OpenTelemetry's metrics and spans: `ringmain.otel.OtelSink("train.>")`, by the program's own providers.

Figures are histograms in OpenTelemetry's units (seconds, By), what has a fraction and no unit is a gauge, and how many events there
were is the counter `ringmain.events`. A begin and its end are a span, and so is an event that says how long it took.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from . import _check, _measures, _native
from ._extra import need, to_realtime_ns
from ._sink import Sink, SinkStats, check_method

SCOPE = "ringmain"
MOMENT_MAX_NS = 2**63 - 1  # later ones, and earlier than 1970, are refused by exporters, with all that is sent beside them
OPEN_MAX = 1024  # begins of a channel that wait for their ends
_IDENTITY = ("step", "phase", "micro_batch", "op", "op_id", "group", "name", "message", "id", "incident", "domain", "thread")
_DURATIONS = ("duration_ns", "took_ns")
_UNITS = {"ns": "s", "bytes": "By", "count": "1", "": "1"}
_ADVICE = "explicit_bucket_boundaries_advisory"  # older ones of the API have none
_NAME_MAX = 255  # characters
# What the SDK has without advice is for milliseconds: 0, 5, 10, … 10,000.
_BOUNDARIES = {
    "s": [float(f"{digit}e{exponent}") for exponent in range(-6, 3) for digit in (1, 2, 5)] + [1000.0],
    "By": [float(4**exponent) for exponent in range(21)],  # to 1 TiB
    "1": [float(f"{digit}e{exponent}") for exponent in range(9) for digit in (1, 2, 5)] + [1e9],
}


class _Open(NamedTuple):
    identity: tuple[Any, ...]
    span: Any


class OtelSink(Sink):
    """Gives events to OpenTelemetry, from a thread of its own. Threads: any."""

    def __init__(self, what: str | Iterable[str], *, bus: Any = None, meter_provider: Any = None, tracer_provider: Any = None,
                 metrics: bool = True, spans: bool = True, attributes: Sequence[str] = _measures.KINDS_OF, queue_events: int = 65536) -> None:
        """what: a pattern or several. Providers: None is the program's, as opentelemetry.metrics and .trace have it.

        attributes: which names are attributes of metrics, in place of op, phase, func, api and name; enumerators always are, and
        spans have all fields. Each value of an attribute is a series of its own, so name none that differs each time.
        ImportError: no provider was given, and opentelemetry is not installed.
        """
        self._metrics, self._spans = _check.flag("metrics", metrics), _check.flag("spans", spans)
        if isinstance(attributes, str) or not isinstance(attributes, Iterable) or not all(isinstance(name, str) for name in attributes):
            raise TypeError(f"attributes is {attributes!r}; give a list of the names of fields")
        self._attributes = tuple(attributes)
        self._meter_provider, self._tracer_provider = meter_provider, tracer_provider
        meters, tracers = self._providers()
        check_method("meter_provider", meters, "get_meter", "a MeterProvider, or None for the program's")
        check_method("tracer_provider", tracers, "get_tracer", "a TracerProvider, or None for the program's")
        self._meter, self._tracer = meters.get_meter(SCOPE), tracers.get_tracer(SCOPE)
        self._count = self._meter.create_counter("ringmain.events", unit="{event}", description="events that were heard")
        self._instruments: dict[tuple[str, str], tuple[Any, bool]] = {}
        self._shapes: dict[int, _measures.Shape] = {}
        self._open: dict[tuple[str, int], list[_Open]] = {}
        self.unpaired = 0
        super().__init__(what, bus, title="OpenTelemetry sink", every=3600.0, queue_events=queue_events)
        self._start()

    def _providers(self) -> tuple[Any, Any]:
        """The program's may be set after the sink was made: what it has before hands on to that."""
        meters = self._meter_provider
        if meters is None:
            meters = need("opentelemetry.metrics", "OtelSink", "ringmain[otel]").get_meter_provider()
        tracers = self._tracer_provider
        if tracers is None:
            tracers = need("opentelemetry.trace", "OtelSink", "ringmain[otel]").get_tracer_provider()
        return meters, tracers

    def _take(self, batch: _native.Batch) -> None:
        shape = self._shapes.get(batch._layout.hash)
        if shape is None:
            shape = self._shapes[batch._layout.hash] = _measures.Shape(batch._layout)
        failed = self._failed
        if self._metrics:
            self._guarded(self._measure, batch, shape)
        if self._spans and (shape.edges or any(figure.name in _DURATIONS for figure in shape.figures)):
            for record in batch:
                self._guarded(self._span, batch.channel, shape, record)
        if self._failed == failed:
            self._given += len(batch)

    # --- metrics ---

    def _measure(self, batch: _native.Batch, shape: _measures.Shape) -> None:
        by = [name for name in (*shape.enumerators, *shape.names) if name in shape.enumerators or name in self._attributes]
        ends = shape.at_edge(batch.array, "end")
        series: dict[tuple[Any, ...], list[int]] = {}
        for i, record in enumerate(batch):
            series.setdefault(tuple(record[name] for name in by), []).append(i)
        for values, rows in series.items():
            said = {name: value if isinstance(value, str) else str(value) for name, value in zip(by, values, strict=True) if value != ""}
            self._count.add(len(rows), said | {"channel": batch.channel})
            timed = {name: value for name, value in said.items() if name != "edge"}
            for figure in shape.figures:
                self._guarded(self._record, batch.channel, figure, batch.array[figure.name][rows][ends[rows]], timed)

    def _record(self, channel: str, figure: _measures.Figure, values: np.ndarray[Any, Any], said: dict[str, str]) -> None:
        known = _measures.known(figure, values)
        if figure.unit in ("bytes", "count"):
            known = known & (values >= 0)  # a histogram takes nothing else, and logs a line for each
        if figure.unit != "ns" or values.dtype.kind == "f":
            self._left_out += int(np.count_nonzero(~known))
        values = values[known]
        if figure.unit == "ns":
            values = values[values >= 0]  # nobody knows that time
        if not len(values):
            return
        instrument, renamed = self._instrument(channel, figure)
        if renamed:
            said = said | {"channel": channel}
        if not figure.unit:
            instrument.set(float(values[-1]), said)
        for value in (values * 1e-9 if figure.unit == "ns" else values).tolist() if figure.unit else ():
            instrument.record(value, said)

    def _instrument(self, channel: str, figure: _measures.Figure) -> tuple[Any, bool]:
        """And whether its name is another than the channel's."""
        key = (channel, figure.name)
        if key not in self._instruments:
            field = figure.name.removesuffix("_ns") if figure.unit == "ns" else figure.name
            name, unit = _name_of(channel, field), _UNITS.get(figure.unit, "1")
            make = self._meter.create_histogram if figure.unit else self._meter.create_gauge
            advice: dict[str, Any] = {_ADVICE: _BOUNDARIES[unit]} if _ADVICE in inspect.signature(make).parameters else {}
            self._instruments[key] = make(name, unit=unit, **advice), name != f"{channel}.{field}"
        return self._instruments[key]

    # --- spans ---

    def _span(self, channel: str, shape: _measures.Shape, record: _native.Record) -> None:
        stamp = record.stamp
        if stamp is None or stamp.time_from == "source":
            return
        fields = record._asdict()
        at_ns = stamp.time_ns + to_realtime_ns()
        edge = fields.get("edge") if shape.edges else "whole"
        took_ns = next((int(fields[name]) for name in _DURATIONS if _is_moment(fields.get(name), at_ns)), 0)
        stack = self._open.get((channel, stamp.publisher), [])
        identity = tuple(fields[name] for name in _IDENTITY if name in fields)
        if edge == "begin":
            if len(stack) >= OPEN_MAX:
                stack.pop(0)
                self.unpaired += 1
            self._open[channel, stamp.publisher] = stack
            stack.append(_Open(identity, self._begin(channel, shape, fields, at_ns, stack[-1].span if stack else None)))
        elif edge == "end":
            found = next((one for one in reversed(stack) if one.identity == identity), None)
            if found is not None:
                stack.remove(found)
                if not stack:
                    del self._open[channel, stamp.publisher]
                found.span.set_attributes(_attributes_of(fields))
                found.span.end(end_time=at_ns)
            elif took_ns:  # its begin was before us, or lost
                self._begin(channel, shape, fields, at_ns - took_ns, None).end(end_time=at_ns)
            else:
                self.unpaired += 1
        elif edge == "whole" and took_ns:
            said = fields.get("began_ns")
            began_ns = int(said) + to_realtime_ns() if _is_moment(said, MOMENT_MAX_NS - to_realtime_ns() - took_ns) else at_ns - took_ns
            self._begin(channel, shape, fields, began_ns, None).end(end_time=began_ns + took_ns)

    def _begin(self, channel: str, shape: _measures.Shape, fields: dict[str, Any], at_ns: int, parent: Any) -> Any:
        word = fields.get(shape.kind_of) or fields.get("message") or ""
        context = None if parent is None else self._inside(parent)
        return self._tracer.start_span(f"{channel} {word}" if word else channel, context=context, start_time=at_ns,
                                       attributes=_attributes_of(fields))

    def _inside(self, parent: Any) -> Any:
        return need("opentelemetry.trace", "OtelSink", "ringmain[otel]").set_span_in_context(parent)

    def _flush(self, last: bool) -> None:
        if not last:
            return
        for stack in self._open.values():
            for one in reversed(stack):
                one.span.set_attribute("ringmain.open", True)
                one.span.end()
        self._open.clear()
        for provider in self._providers():
            self._guarded(self._hand_over, provider)

    def _hand_over(self, provider: Any) -> None:
        flush = getattr(provider, "force_flush", None)
        if flush is not None and flush() is False:
            raise TimeoutError(f"{type(provider).__name__} did not hand over what it has in time")


def _is_moment(value: Any, most: int) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and 0 < value <= most


def _name_of(channel: str, field: str) -> str:
    """A name that OpenTelemetry takes for an instrument: at most 255 characters of ASCII, a letter first."""
    channel, field = (re.sub(r"[^A-Za-z0-9_./-]", "_", word) for word in (channel, field))
    if not channel[:1].isalpha():
        channel = f"ringmain.{channel}"
    return f"{channel[:max(1, _NAME_MAX - 1 - len(field))]}.{field}"[:_NAME_MAX]


def _attributes_of(fields: dict[str, Any]) -> dict[str, Any]:
    """OpenTelemetry's integers have 63 bits and a sign."""
    return {name: str(value) if isinstance(value, int) and value >= 2**63 else value for name, value in fields.items()
            if value != "" and name not in _DURATIONS and name != "edge"}


__all__ = ["OtelSink", "SinkStats"]
