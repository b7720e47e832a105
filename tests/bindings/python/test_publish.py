"""Which events can Python describe, and do they arrive as they were published?"""

import enum
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
import ringmain


class Colour(enum.IntEnum):
    RED = 0
    GREEN = 1


@ringmain.event("say.all")
@dataclass
class All:
    whole: int
    real: float
    truth: bool
    word: str
    colour: Colour
    small: np.uint16
    wide: Annotated[np.uint64, ringmain.Unit.BYTES]
    text: Annotated[str, ringmain.Text(16)]
    half: Annotated[float, "f32"] = 0.5


def test_a_dataclass_comes_out_as_it_went_in(bus, keep, long):
    bus.subscribe(All, keep)
    said = All(-(2**63), 0.1, True, "a name — with ü", Colour.GREEN, 65535, 2**64 - 1, "short", 1.5)
    assert bus.publish(said) and bus.flush(long)
    (record,) = keep.batches[0]
    assert record._asdict() == {"whole": -(2**63), "real": 0.1, "truth": True, "word": "a name — with ü", "colour": "green",
                                "small": 65535, "wide": 2**64 - 1, "text": "short", "half": 1.5}
    row = keep.batches[0].array[0]
    assert ringmain.name_text(int(row["word"])) == "a name — with ü"
    assert row["text"]["bytes"] == b"short"
    units = {field[0]: field[2] for field in bus.channel(All).type.fields}
    assert units["wide"] == "bytes" and units["whole"] == ""


@pytest.mark.parametrize(("field", "value", "error", "words"), [
    ("whole", 2**63, OverflowError, "from -9223372036854775808 to 9223372036854775807"), ("small", -1, OverflowError, "from 0"),
    ("small", 65536, OverflowError, "from 0"), ("whole", 1.5, TypeError, "an integer"), ("real", "x", TypeError, "a number"),
    ("word", 7, TypeError, "a str"), ("colour", "blue", ValueError, "red,green"), ("nothing", 1, TypeError, "has no field")])
def test_what_does_not_fit_is_refused_in_one_sentence(bus, field, value, error, words):
    with pytest.raises(error, match=words) as said:
        bus.channel(All).publish(**{field: value})
    assert "\n" not in str(said.value) and "say.all" in str(said.value)


def test_fields_are_given_by_their_names_only(bus):
    with pytest.raises(TypeError, match="by their names only"):
        bus.channel(All).publish(1)


def test_a_call_may_be_kept_and_outlives_the_bus(keep, long):
    with ringmain.Bus() as own:
        say = own.channel(All).publish
        assert say(whole=1).code == "unheard"
        own.subscribe(All, keep)
        assert say().code == "accepted" and say(**{"wh" + "ole": 2, "real": 3}).code == "accepted" and own.flush(long)
        assert [(record.whole, record.real) for batch in keep.batches for record in batch] == [(0, 0.0), (2, 3.0)]
    assert say(whole=1).code == "closed" and not say(whole=1)


def test_long_text_is_cut_and_marked(bus, keep, long):
    bus.subscribe(All, keep)
    assert bus.channel(All).publish(text="x" * 13 + "ü", word="y" * 70000) and bus.flush(long)
    (record,) = keep.batches[0]
    assert record.text == "x" * 13, "not in the middle of a character"
    assert keep.batches[0].array["text"]["size_and_cut"][0] == 0x8000 | 13
    assert len(record.word) == 65536


def test_text_that_is_no_unicode_is_said_all_the_same(bus, keep, long):
    bus.subscribe(All, keep)
    assert bus.channel(All).publish(word="a\ud800b", text="\udfff") and bus.flush(long)
    (record,) = keep.batches[0]
    assert (record.word, record.text) == ("a?b", "?")


def test_rows_of_an_array_are_said_in_order(bus, keep, long):
    bus.subscribe("say.rows", keep)
    channel = bus.channel("say.rows", dtype=[("n", "u4"), ("x", "f8"), ("op", "U8"), ("note", "S6")])
    rows = np.zeros(5000, channel.dtype)
    rows["n"] = np.arange(5000)
    rows["x"] = rows["n"] / 2
    rows["op"] = ringmain.name("copy")
    told = channel.publish_all(rows)
    assert told and (told.accepted, told.refused, told.last) == (5000, 0, "accepted")
    assert bus.flush(long)
    heard = np.concatenate([batch.array for batch in keep.batches])
    assert (heard["n"] == rows["n"]).all() and (heard["x"] == rows["x"]).all()
    assert keep.batches[0][0].op == "copy"


def test_rows_of_another_dtype_are_matched_by_field_name(bus, keep, long):
    bus.subscribe("say.other", keep)
    channel = bus.channel("say.other", dtype=[("n", "u4"), ("x", "f8"), ("op", "U8"), ("note", "S14")])
    other = np.array([("a", 1, b"short"), ("b", 2, b"much longer than 14")], dtype=[("op", "U4"), ("n", "i8"), ("note", "S32")])
    assert channel.publish_all(other) and bus.flush(long)
    records = [record for batch in keep.batches for record in batch]
    assert [(record.n, record.op, record.note, record.x) for record in records] == [(1, "a", "short", 0.0),
                                                                                   (2, "b", "much longer th", 0.0)]
    with pytest.raises(TypeError, match="no field 'm'"):
        channel.publish_all(np.zeros(3, dtype=[("m", "i8")]))
    with pytest.raises(TypeError, match="structured array"):
        channel.publish_all(np.zeros(3))


def test_what_was_heard_can_be_said_again(bus, keep, long):
    bus.subscribe("say.again", keep)
    channel = bus.channel("say.again", dtype=[("n", "u4"), ("op", "U8")])
    assert channel.publish(n=3, op="x") and bus.flush(long)
    assert channel.publish_all(keep.batches[0].array) and bus.flush(long)
    assert [record._asdict() for record in keep.batches[1]] == [{"n": 3, "op": "x"}]


def test_nobody_listening_is_no_loss(bus, ticks):
    assert not ticks.wanted
    told = ticks.publish(n=1)
    assert told and told.code == "unheard"
    assert ticks.publish_all(np.zeros(3, ticks.dtype)).last == "unheard"
    with pytest.raises(TypeError, match="no field"):
        ticks.publish(m=1)


@pytest.mark.parametrize("name", ["", "a..b", ".a", "a.", "a b", "a.*", ">", "x" * 256])
def test_a_name_that_patterns_cannot_match_is_refused(bus, name):
    with pytest.raises(ValueError, match="event"):
        bus.channel(name, dtype=[("n", "i8")])


@pytest.mark.parametrize("dtype", [[("n", "c16")], [("n", ">i8")], [("n", "O")], [("n", "M8[ns]")], "i8", [("n", "i8", (3,))]])
def test_a_dtype_that_is_no_event_is_refused(bus, dtype):
    with pytest.raises(TypeError):
        bus.channel("say.bad", dtype=dtype)


def test_an_event_that_is_too_large_is_refused(bus):
    with pytest.raises(ValueError, match="at most 1024"):
        bus.channel("say.large", dtype=[(f"f{i}", "i8") for i in range(129)])
    assert bus.channel("say.largest", dtype=[(f"f{i}", "i8") for i in range(128)]).publish(f127=1)


def test_two_types_under_one_name_are_a_conflict(bus):
    bus.channel("say.one", dtype=[("n", "i8")])
    assert bus.channel("say.one", dtype=[("n", "i8")]).publish(n=1)
    with pytest.raises(ValueError, match="give one of the two another name"):
        bus.channel("say.one", dtype=[("n", "i4")])


def test_a_name_nobody_has_defined_is_said_so(bus):
    with pytest.raises(KeyError, match="nobody has said what it holds"):
        bus.channel("say.unknown")
    with pytest.raises(TypeError, match="@ringmain.event"):
        bus.publish(object())


def test_the_numbers_of_names_are_those_of_their_texts():
    assert ringmain.name("") == 0
    assert ringmain.name("gemm") == ringmain.name("gemm") != ringmain.name("conv")
    assert ringmain.name_text(ringmain.name("ü")) == "ü"
