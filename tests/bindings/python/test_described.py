"""Does Python know the events that C++ describes, and can it publish them?"""

import json

import pytest
import ringmain
from ringmain import EventType, _native


@pytest.mark.parametrize("name", ["train.step", "compile.start", "compile.end", "compile.graph_break", "cuda.memory_allocation",
                                  "cuda.stream_deletion", "cuda.context", "cuda.capture", "cuda.call_begin", "cuda.call_refused", "cuda.source",
                                  "cuda.completion", "cuda.buffer_use", "cuda.alarm", "collective.issued",
                                  "nvtx.range", "bus.loss"])
def test_events_of_cxx_are_known_by_name_and_as_attributes(bus, name):
    type_ = getattr(ringmain.events, name.replace(".", "_"))
    assert type_.name == name
    assert bus.channel(name).type == type_ == bus.channel(type_).type
    assert list(type_.dtype.names) == [field[0] for field in type_.fields]


def test_an_event_that_nobody_described_is_said_plainly():
    with pytest.raises(AttributeError, match="describes no event 'compile_strat'"):
        _ = ringmain.events.compile_strat


def test_they_are_published_by_keyword_and_what_is_left_out_is_as_in_cxx(bus, keep, long):
    bus.subscribe("collective.*", keep)
    assert bus.publish(ringmain.events.collective_issued, op="all_reduce", bytes=1 << 40, group_size=8)
    assert bus.flush(long)
    (record,) = keep.batches[0]
    assert (record.op, record.bytes, record.group_size) == ("all_reduce", 1 << 40, 8)
    assert (record.peer, record.rank, record.device) == (-1, -1, -1)
    assert record.stream == 2**64 - 1


def test_words_of_enumerations_are_read_and_written(bus, keep, long):
    bus.subscribe("train.step", keep)
    assert bus.publish("train.step", step=3, phase="forward", edge="end", took_ns=5)
    assert bus.publish("train.step", step=3, edge=0)
    assert bus.flush(long)
    records = [record for batch in keep.batches for record in batch]
    assert [record.edge for record in records] == ["end", "begin"]
    assert keep.batches[0].array["edge"][0] == 1
    with pytest.raises(ValueError, match="begin,end"):
        bus.publish("train.step", edge="middle")


def test_a_record_of_dynamo_becomes_events_of_its_compile(bus, keep, long):
    bus.subscribe("compile.>", keep)
    tap = _native.CompileTap(bus._native)
    assert "dynamo_start" in tap.wanted()
    tap.record(json.dumps({"dynamo_start": {"stack": []}, "frame_id": 3, "frame_compile_id": 1, "attempt": 0}), None, 12345)
    tap.finish()
    assert bus.flush(long)
    starts = [record for batch in keep.batches if batch.channel == "compile.start" for record in batch]
    assert [(record.frame, record.recompile) for record in starts] == [(3, 1)]
    assert tap.counts()["mapped"] == 1 and tap.kinds() == {"dynamo_start": 1}
    tap.record("{not json", "\ud800")  # a lone surrogate is no reason to fail the user's call
    assert tap.counts()["skipped"]["bad_json"] == 1


def test_the_same_fields_elsewhere_are_another_event(bus):
    def at(a, b):
        return EventType(_native.define("t.lies", 16, [("a", "u64", "", a, 8, ""), ("b", "u64", "", b, 8, "")]))

    first, second = at(0, 8), at(8, 0)
    assert first != second and hash(first) != hash(second)
    assert first == at(0, 8)
    assert first.dtype.fields["a"][1] == 0 and second.dtype.fields["a"][1] == 8
    bus.channel(first)
    with pytest.raises(Exception, match="field 'a' at offset 0, not 8"):
        bus.channel(second)
