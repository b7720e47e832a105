"""Are events metrics and spans of OpenTelemetry's? Against providers that keep what they are given; with the package there, against its
own with readers in memory."""

import logging
import re
import subprocess
import sys
from typing import Annotated

import numpy as np
import pytest
import ringmain
from ringmain.otel import OtelSink


@ringmain.event("test.copied")
class Copied:
    op: str
    bytes: Annotated[int, ringmain.Unit.BYTES] = 0
    duration_ns: Annotated[int, ringmain.Unit.NS] = 0
    speed: float = float("nan")
    rank: int = 0
    big: np.uint64 = 0


class Span:
    def __init__(self, name, context, start_time, attributes):
        self.name, self.parent, self.start, self.attributes, self.ended = name, context, start_time, dict(attributes), None

    def set_attributes(self, attributes):
        self.attributes |= attributes

    def set_attribute(self, name, value):
        self.attributes[name] = value

    def end(self, end_time=None):
        self.ended = end_time or -1


class Instrument:
    def __init__(self, kind, unit, kept):
        self.kind, self.unit, self.kept = kind, unit, kept

    def add(self, value, attributes):
        self.kept.append((value, attributes))

    set = record = add


class Provider:
    """What the sink needs of both."""

    def __init__(self):
        self.instruments, self.spans, self.flushed = {}, [], 0

    def get_meter(self, name):
        return self

    get_tracer = get_meter

    def _make(kind):
        def make(self, name, unit="", description=""):
            return self.instruments.setdefault(name, Instrument(kind, unit, []))
        return make

    create_counter, create_histogram, create_gauge = _make("counter"), _make("histogram"), _make("gauge")

    def start_span(self, name, context=None, start_time=None, attributes=None):
        self.spans.append(Span(name, context, start_time, attributes))
        return self.spans[-1]

    def force_flush(self):
        self.flushed += 1
        return True


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setattr(OtelSink, "_inside", lambda self, span: span)
    return Provider()


def sink_of(provider, bus, what="test.>", **options):
    return OtelSink(what, bus=bus, meter_provider=provider, tracer_provider=provider, **options)


def test_figures_are_histograms_in_seconds_and_bytes_and_events_are_counted(bus, provider):
    with sink_of(provider, bus, spans=False) as sink:
        bus.publish(Copied("up", 10, 2_000_000_000))
        bus.publish(Copied("up", 30, 0))
        bus.publish(Copied("down", 5, -1, 2.5))
    made = provider.instruments
    assert {name: (one.kind, one.unit) for name, one in made.items()} == {
        "ringmain.events": ("counter", "{event}"), "test.copied.bytes": ("histogram", "By"), "test.copied.duration": ("histogram", "s"),
        "test.copied.speed": ("gauge", "1")}
    counted = made["ringmain.events"].kept  # one for each operation of each batch
    assert {said["channel"] for _, said in counted} == {"test.copied"}
    assert [sum(n for n, said in counted if said["op"] == op) for op in ("up", "down")] == [2, 1]
    assert made["test.copied.bytes"].kept == [(10, {"op": "up"}), (30, {"op": "up"}), (5, {"op": "down"})]
    assert made["test.copied.duration"].kept == [(2.0, {"op": "up"}), (0.0, {"op": "up"})], "-1 is a time that nobody knows"
    assert made["test.copied.speed"].kept == [(2.5, {"op": "down"})]
    assert sink.stats().given == 3 and provider.flushed == 2 and not provider.spans


def test_a_begin_and_its_end_are_a_span_inside_that_of_its_step(bus, provider):
    with sink_of(provider, bus, "train.step", metrics=False), bus.step(7), bus.step(phase="forward", micro_batch=2):
        pass
    step, phase, micro = provider.spans
    assert [(one.name, one.parent) for one in provider.spans] == [("train.step", None), ("train.step forward", step),
                                                                  ("train.step forward", phase)]
    assert step.start <= phase.start <= micro.start <= micro.ended <= phase.ended <= step.ended
    assert step.attributes == {"step": 7, "micro_batch": 0} and micro.attributes == {"step": 7, "phase": "forward", "micro_batch": 2}


def test_an_event_that_says_how_long_it_took_is_a_span_that_ends_where_it_was_said(bus, provider):
    with bus.mailbox("test.copied") as box:
        with sink_of(provider, bus, metrics=False):
            bus.publish(Copied("up", 10, 5_000, big=2**63))
            bus.publish(Copied("none", 10, 0))
        (batch,) = list(box)
    (span,) = provider.spans
    assert span.name == "test.copied up" and span.ended - span.start == 5_000
    assert span.ended == batch[0].stamp.time_ns + ringmain._extra.to_realtime_ns()
    assert span.attributes["big"] == str(2**63) and span.attributes["bytes"] == 10 and "duration_ns" not in span.attributes


def test_a_begin_without_an_end_is_marked_and_an_end_without_a_begin_goes_by_what_it_took(bus, provider):
    with sink_of(provider, bus, "train.step", metrics=False) as sink:
        bus.publish("train.step", step=1, edge="end", took_ns=1000)
        bus.publish("train.step", step=2, edge="end")
        bus.publish("train.step", step=3, edge="begin")
        bus.publish("train.step", step=4, edge="begin")
        bus.publish("train.step", step=3, edge="end", took_ns=7)
    spans = {one.attributes["step"]: one for one in provider.spans}
    assert spans[1].ended - spans[1].start == 1000 and 2 not in spans and sink.unpaired == 1
    assert "ringmain.open" not in spans[3].attributes and spans[4].attributes["ringmain.open"] is True and spans[4].ended


Ns = Annotated[int, ringmain.Unit.NS]


@ringmain.event("test.when")
class When:
    took_ns: Ns
    began_ns: Ns = 0


@ringmain.event("test.fraction")
class Fraction:
    duration_ns: Annotated[float, ringmain.Unit.NS]


@ringmain.event("test.word")
class Word:
    took_ns: Ns
    duration_ns: str = ""
    began_ns: str = ""


def test_a_moment_that_no_exporter_takes_is_none(bus, provider):
    most = 2**63 - 1
    with sink_of(provider, bus, metrics=False) as sink:
        for told in (When(most), When(5, most), When(most, most), Fraction(5.5), Fraction(float("inf")), Fraction(float("nan")),
                     Word(5, "x", "y"), When(-1, -1), When(7)):
            bus.publish(told)
    assert sink.stats().failed == 0 and [span.ended - span.start for span in provider.spans] == [5, 5, 5, 7]
    for span in provider.spans:
        assert all(type(at) is int and 0 <= at <= most for at in (span.start, span.ended))


NAMES = ["2d.conv", "_x.y", "test.copied@2", "test." + "a" * 250]


@pytest.mark.parametrize("name", NAMES)
def test_a_channel_whose_name_is_no_instruments_has_one_that_is(bus, provider, name):
    @ringmain.event(name)
    class Named:
        took_ns: Ns
        size: Annotated[int, ringmain.Unit.BYTES]

    with sink_of(provider, bus, ">") as sink:
        bus.publish(Named(1_000_000_000, 8))
    assert sink.stats().failed == 0 and len(provider.spans) == 1 and provider.spans[0].name == name
    made = set(provider.instruments) - {"ringmain.events"}
    assert len(made) == 2 and all(re.fullmatch("[A-Za-z][-A-Za-z0-9_./]{0,254}", one) for one in made), made
    assert {one.rpartition(".")[2] for one in made} == {"took", "size"}
    assert all(provider.instruments[one].kept[0][1] == {"channel": name} for one in made), "so that two that read the same are two"


def test_what_is_no_figure_is_left_out_and_counted(bus, provider):
    with sink_of(provider, bus, spans=False) as sink:
        bus.publish(Copied("up", -5, -1, 1.0))
        bus.publish(Copied("up", 5, -1, float("inf")))
        bus.publish(Copied("up", 6, -1))
    assert [value for value, _ in provider.instruments["test.copied.bytes"].kept] == [5, 6]
    assert sink.stats().left_out == 3, "-5, an infinity and NaN; a time below 0 is one that nobody knows"
    assert sink.stats().failed == 0 and sink.stats().given == 3


def test_one_figure_that_is_refused_costs_neither_the_others_nor_spans(bus, provider):
    def refuse(name, unit=""):
        raise ValueError("no such gauge")

    provider.create_gauge = refuse
    with sink_of(provider, bus) as sink:
        bus.publish(Copied("up", 5, 7, 1.0))
    assert sink.stats().failed == 1 and sink.stats().given == 0 and sink.stats().last_error == "ValueError: no such gauge"
    assert provider.instruments["test.copied.bytes"].kept and provider.instruments["test.copied.duration"].kept and len(provider.spans) == 1


def test_one_provider_that_hands_nothing_over_does_not_keep_the_other_from_it(bus, provider):
    class Refuses(Provider):
        def force_flush(self):
            return False

    with OtelSink("test.>", bus=bus, meter_provider=Refuses(), tracer_provider=provider) as sink:
        pass
    assert provider.flushed == 1 and sink.stats().last_error == "TimeoutError: Refuses did not hand over what it has in time"


def test_a_backend_that_fails_is_counted_and_told_once(bus, provider, caplog):
    def refuse(*_, **__):
        raise ConnectionError("no collector")

    provider.start_span = refuse
    with caplog.at_level(logging.WARNING, logger="ringmain"), sink_of(provider, bus, metrics=False) as sink:
        for _ in range(5):
            assert bus.publish(Copied("up", 1, 10))
            assert bus.flush(60)
    assert sink.stats().failed >= 1 and sink.stats().last_error == "ConnectionError: no collector"
    assert len([record for record in caplog.records if "OpenTelemetry sink" in record.message]) == 1


def test_wrong_arguments_get_a_sentence(bus, provider):
    for wrong, why in (({"spans": 1}, "spans is 1"), ({"metrics": None}, "metrics is None"), ({"attributes": "op"}, "attributes is 'op'"),
                       ({"attributes": [1]}, "attributes is"), ({"attributes": 5}, "attributes is 5"),
                       ({"meter_provider": object()}, r"meter_provider is .* which has no get_meter\(\); give a MeterProvider"),
                       ({"tracer_provider": 7}, r"tracer_provider is 7, which has no get_tracer\(\)")):
        with pytest.raises(TypeError, match=why):
            OtelSink(**({"what": "test.>", "bus": bus, "meter_provider": provider, "tracer_provider": provider} | wrong))


def test_without_the_package_one_sentence_says_what_to_install(bus, monkeypatch):
    for name in ("opentelemetry", "opentelemetry.metrics", "opentelemetry.trace"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"OtelSink needs opentelemetry, which is not installed: pip install ringmain\[otel\]$"):
        OtelSink("train.>", bus=bus)


def test_opentelemetry_itself(bus):
    pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed: pip install ringmain[otel]")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    reader, kept, tracers = InMemoryMetricReader(), InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(kept))
    meters = MeterProvider(metric_readers=[reader])
    with OtelSink(["train.step", "test.>"], bus=bus, meter_provider=meters, tracer_provider=tracers) as sink:
        with bus.step(7), bus.step(phase="forward"):
            bus.publish(Copied("up", 10, 5_000_000, 1.5, big=2**64 - 1))
    assert sink.stats().failed == 0, sink.stats()
    spans = {span.name: span for span in kept.get_finished_spans()}
    assert set(spans) == {"train.step", "train.step forward", "test.copied up"}
    step, phase = spans["train.step"], spans["train.step forward"]
    assert phase.parent.span_id == step.context.span_id and step.start_time <= phase.start_time <= phase.end_time <= step.end_time
    assert spans["test.copied up"].end_time - spans["test.copied up"].start_time == 5_000_000
    made = {metric.name: metric for of in reader.get_metrics_data().resource_metrics for scope in of.scope_metrics for metric in scope.metrics}
    assert made["test.copied.duration"].unit == "s" and made["test.copied.duration"].data.data_points[0].sum == pytest.approx(0.005)
    assert made["test.copied.bytes"].unit == "By" and made["test.copied.speed"].data.data_points[0].value == 1.5
    assert sum(point.value for point in made["ringmain.events"].data.data_points) == 5
    tracers.shutdown()
    meters.shutdown()


LATE = """
import ringmain
from ringmain.otel import OtelSink
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

sink = OtelSink("train.step")
reader, kept, tracers = InMemoryMetricReader(), InMemorySpanExporter(), TracerProvider()
tracers.add_span_processor(BatchSpanProcessor(kept, schedule_delay_millis=3_600_000))
metrics.set_meter_provider(MeterProvider([reader]))
trace.set_tracer_provider(tracers)
with ringmain.Bus.process().step(7):
    pass
assert sink.close(60) and sink.stats().failed == 0, sink.stats()
print([span.name for span in kept.get_finished_spans()])
for of in reader.get_metrics_data().resource_metrics:
    for metric in of.scope_metrics[0].metrics:
        point = metric.data.data_points[0]
        print(metric.name, *([point.explicit_bounds[0], point.explicit_bounds[-1]] if metric.unit == "s" else []))
"""


def test_the_programs_providers_may_be_set_after_the_sink_was_made():
    pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed: pip install ringmain[otel]")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LATE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['train.step']\nringmain.events\ntrain.step.took 1e-06 1000.0\n"


def test_histograms_have_the_boundaries_that_their_units_need(bus):
    pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry's SDK is not installed: pip install ringmain[otel]")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    with OtelSink("test.>", bus=bus, meter_provider=MeterProvider([reader]), spans=False) as sink:
        for took_ns in (2_500, 3_000_000, 40_000_000):
            bus.publish(Copied("up", 3 << 20, took_ns))
    assert sink.stats().failed == 0
    made = {metric.name: metric.data.data_points[0] for of in reader.get_metrics_data().resource_metrics for scope in of.scope_metrics
            for metric in scope.metrics}
    bounds, counts = made["test.copied.duration"].explicit_bounds, made["test.copied.duration"].bucket_counts
    assert [bounds[i] for i, count in enumerate(counts) if count] == [5e-6, 5e-3, 5e-2], "three times, three buckets"
    bounds, counts = made["test.copied.bytes"].explicit_bounds, made["test.copied.bytes"].bucket_counts
    assert [bounds[i] for i, count in enumerate(counts) if count] == [4 << 20]
