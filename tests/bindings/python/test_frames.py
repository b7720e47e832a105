"""Are events columns of Arrow's, with their types, units and words, and taken by who takes Arrow?"""

import enum
import gc
import sys
import typing
from typing import Annotated

import numpy as np
import pytest
import ringmain
import ringmain.frames


class Kind(enum.IntEnum):
    A = 0
    B = 1


@ringmain.event("test.all")
class All:
    whole: int
    half: np.float32
    took: Annotated[int, ringmain.Unit.NS]
    late: Annotated[np.uint64, ringmain.Unit.NS]
    size: Annotated[np.uint32, ringmain.Unit.BYTES]
    good: bool
    kind: Kind
    word: str
    text: Annotated[str, ringmain.Text(16)]


ROWS = [All(n, np.float32(n / 2), 1000 * n, np.uint64(n), np.uint32(n), n % 2 == 0, Kind(n % 2), f"w{n % 3}", "é" * n) for n in range(6)]


@pytest.fixture
def batch(bus, long):
    with bus.mailbox(All) as box:
        assert all([bus.publish(row) for row in ROWS]) and bus.flush(long)
        return box.take()


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install ringmain[arrow]")


def test_without_pyarrow_one_sentence_says_what_to_install(batch, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (batch.to_arrow, batch.to_pandas, batch.__arrow_c_stream__, batch.__arrow_c_array__, lambda: ringmain.frames.to_arrow([])):
        with pytest.raises(ImportError, match=r"needs pyarrow, which is not installed: pip install ringmain\[arrow\]$"):
            call()


def test_a_call_that_fits_nothing_gets_a_sentence(batch):
    with pytest.raises(TypeError, match=r"to_arrow\(\) takes nothing"):
        batch.to_arrow(1)
    with pytest.raises(TypeError, match=r"to_pandas\(\) takes nothing"):
        batch.to_pandas(index=1)


def test_each_field_has_its_type_and_its_unit(batch, arrow):
    made = batch.to_arrow()
    assert isinstance(made, arrow.RecordBatch) and made.num_rows == len(ROWS)
    words = arrow.dictionary(arrow.int32(), arrow.utf8())
    assert {field.name: field.type for field in made.schema} == {
        "whole": arrow.int64(), "half": arrow.float32(), "took": arrow.duration("ns"), "late": arrow.duration("ns"), "size": arrow.uint32(),
        "good": arrow.bool_(), "kind": words, "word": words, "text": arrow.utf8(), "stamp_time": arrow.timestamp("ns", tz="UTC"),
        "stamp_time_ns": arrow.duration("ns"), "stamp_sequence": arrow.uint64(), "stamp_publisher": arrow.uint32(), "stamp_time_from": words}
    assert made.schema.metadata == {b"ringmain.channel": b"test.all"}
    assert made.schema.field("size").metadata == {b"ringmain.unit": b"bytes"} and made.schema.field("whole").metadata is None
    made.validate(full=True)


def test_the_values_are_those_of_the_records(batch, arrow):
    made = batch.to_arrow()
    for name in ("whole", "half", "size", "good", "kind", "word", "text"):
        assert made.column(name).to_pylist() == [record[name] for record in batch], name
    for name in ("took", "late"):
        assert made.column(name).cast(arrow.int64()).to_pylist() == [record[name] for record in batch]
    stamps = [record.stamp for record in batch]
    assert made.column("stamp_time_ns").cast(arrow.int64()).to_pylist() == [stamp.time_ns for stamp in stamps]
    assert made.column("stamp_sequence").to_pylist() == [stamp.sequence for stamp in stamps]
    assert made.column("stamp_time_from").to_pylist() == [stamp.time_from for stamp in stamps]
    moved = {of_day - stamp.time_ns for of_day, stamp in
             zip(made.column("stamp_time").cast(arrow.int64()).to_pylist(), stamps, strict=True)}
    assert len(moved) == 1 and moved == {ringmain.frames.to_realtime_ns()}


def test_what_does_not_fit_is_null_a_number_or_replaced_and_never_wrong(bus, arrow, long):
    array = np.zeros(4, All.__ringmain_event__.dtype)
    array["late"] = [1, 2**63 - 1, 2**63, 2**64 - 1]
    array["kind"] = [0, 1, 7, 9]
    array["text"]["bytes"] = ["é".encode() * 3, b"\xff", b"abc", b""]
    array["text"]["size_and_cut"] = [0x8000 | 5, 1, 2, 0]  # the first was cut inside a character
    with bus.mailbox(All) as box:
        assert bus.channel(All).publish_all(array) and bus.flush(long)
        batch = box.take()
        made = batch.to_arrow()
    assert made.column("late").cast(arrow.int64()).to_pylist() == [1, 2**63 - 1, None, None]
    assert made.column("kind").to_pylist() == ["a", "b", "7", "9"]
    assert made.column("text").to_pylist() == [record.text for record in batch] == ["éé\ufffd", "\ufffd", "ab", ""]
    assert ringmain.frames.to_arrow(array).column("text").to_pylist() == made.column("text").to_pylist()


def test_words_that_read_the_same_are_one(arrow, monkeypatch):
    name = np.dtype("u4", metadata={"ringmain": "name"})
    kind = np.dtype("u4", metadata={"ringmain": "enum", "ringmain_enumerators": "a,b,a"})
    array = np.array([(7, 0), (8, 2), (9, 1), (7, 5)], [("name", name), ("kind", kind)])
    monkeypatch.setattr(ringmain.frames._native, "name_text", lambda number: "x" if number == 9 else "\ufffd")
    made = ringmain.frames.to_arrow(array)
    assert made.column("name").to_pylist() == ["\ufffd", "\ufffd", "x", "\ufffd"] and made.column("kind").to_pylist() == ["a", "a", "b", "5"]
    for column in made.columns:
        words = column.dictionary.to_pylist()
        assert len(words) == len(set(words)), "pandas takes no category twice"


def test_an_enumeration_that_is_not_0_to_n_is_numbers(bus, arrow, long):
    class Late(enum.IntEnum):
        A = 1
        B = 2

    @ringmain.event("test.late")
    class Has:
        kind: Late

    with bus.mailbox(Has) as box:
        assert bus.publish(Has(Late.B)) and bus.flush(long)
        assert box.take().to_arrow().column("kind").to_pylist() == [2]


def test_moments_of_one_clock_can_be_subtracted(bus, batch, arrow, long):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install ringmain[arrow]")
    frame = batch.to_pandas()
    assert (frame["stamp_time_ns"] - frame["took"]).tolist() == [pandas.Timedelta(one.stamp.time_ns - one.took, "ns") for one in batch]


def test_a_source_with_a_clock_of_its_own_has_no_time_of_day(batch, arrow):
    array = batch.array.copy()
    array["stamp"]["time_from"][1] = 2
    times = ringmain.frames.to_arrow(array).column("stamp_time")
    assert [time.is_valid for time in times] == [True, False, True, True, True, True]


def test_a_column_that_lies_back_to_back_is_not_copied_and_a_strided_one_is_once(batch, arrow):
    array = np.zeros(100, np.dtype([("n", "i8")]))
    made = ringmain.frames.to_arrow(array)
    assert made.column(0).buffers()[1].address == array.__array_interface__["data"][0]
    array["n"][7] = 5
    assert made.column(0)[7].as_py() == 5
    strided = batch.to_arrow().column("whole")
    at, size = batch._room
    assert not at <= strided.buffers()[1].address < at + size and strided.buffers()[1].size == 8 * len(batch)


def test_what_is_not_copied_is_kept(arrow):
    array = np.arange(1000, dtype="i8").view([("n", "i8")])
    column = ringmain.frames.to_arrow(array).column(0)
    del array
    gc.collect()
    assert column.to_pylist() == list(range(1000))


def test_several_batches_are_one_table_and_different_ones_are_refused(bus, batch, ticks, arrow, long):
    table = ringmain.frames.to_arrow([batch, batch.array[2:4]])
    assert isinstance(table, arrow.Table) and table.column("whole").to_pylist() == [0, 1, 2, 3, 4, 5, 2, 3]
    with bus.mailbox(ticks) as box:
        assert ticks.publish(n=1) and bus.flush(long)
        with pytest.raises(ValueError, match="one type: here are test.all and test.tick"):
            ringmain.frames.to_arrow([batch, box.take()])
    with pytest.raises(ValueError, match="no batch"):
        ringmain.frames.to_arrow([])


@pytest.mark.parametrize("wrong", [7, "test.all", None, [7], np.zeros(3), np.zeros((2, 2), [("n", "i8")]), np.zeros(1, [("n", ">i8")]),
                                   np.ones(2, [("n", "i4", (2,))]), np.ones(2, [("n", "?", (2,))])])
def test_what_holds_no_events_is_refused_in_a_sentence(wrong, arrow):
    with pytest.raises(TypeError, match=r"to_arrow\(\) takes"):
        ringmain.frames.to_arrow(wrong)


def test_an_empty_array_has_its_columns(batch, arrow):
    made = ringmain.frames.to_arrow(batch.array[:0])
    assert made.num_rows == 0 and made.schema.names == batch.to_arrow().schema.names
    made.validate(full=True)


def test_each_event_that_ringmain_describes_has_columns(arrow):
    for name, described in ringmain.events.all_events.items():
        made = ringmain.frames.to_arrow(np.zeros(3, described.dtype))
        made.validate(full=True)
        assert made.schema.names == [field[0] for field in described.fields], name


def test_whoever_takes_arrows_interface_takes_a_batch(batch, arrow):
    assert arrow.table(batch).to_pylist() == arrow.Table.from_batches([batch.to_arrow()]).to_pylist()
    assert arrow.record_batch(batch).equals(batch.to_arrow())


def test_pandas_has_categories_and_timedeltas(batch, arrow):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install ringmain[arrow]")
    frame = batch.to_pandas()
    assert frame["kind"].dtype == "category" and list(frame["kind"]) == ["a", "b"] * 3
    assert frame["took"].sum() == pandas.Timedelta(15_000, "ns") and frame["text"][2] == "éé"
    assert str(frame["stamp_time"].dtype) == "datetime64[ns, UTC]"
    assert frame.groupby("word", observed=True)["whole"].sum().to_dict() == {"w0": 3, "w1": 5, "w2": 7}


def test_polars_takes_a_batch_as_it_is(batch, arrow):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.DataFrame(batch)
    assert frame["whole"].to_list() == [0, 1, 2, 3, 4, 5] and frame["kind"].cast(str).to_list() == ["a", "b"] * 3
    assert frame["took"].dtype == polars.Duration("ns") and frame["word"].cast(str).to_list()[:4] == ["w0", "w1", "w2", "w0"]


def test_duckdb_asks_a_batch(batch, arrow):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    events = typing.cast(object, batch)  # DuckDB finds it by its name
    assert duckdb.sql("select sum(whole), max(size) from events").fetchall() == [(15, 5)] and events is batch
