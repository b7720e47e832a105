"""Is a batch the engine's own memory, and is the GIL taken once per batch?"""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest


def address_of(array):
    return array.__array_interface__["data"][0]


def test_the_array_lies_in_the_memory_that_the_engine_took_the_run_into(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)
    for n in range(500):
        assert ticks.publish(n=n, x=n / 2)
    assert bus.flush(long)
    for batch in keep.batches:
        address, size = batch._room
        array = batch.array
        assert address <= address_of(array)
        assert address_of(array) + array.strides[0] * len(array) <= address + size
        assert not array.flags.owndata
        # What is written there by address is read by the array, the records and another array: nothing was copied.
        offset = array.dtype.fields["n"][1]
        ctypes.c_int64.from_address(address_of(array) + offset).value = -7
        assert array["n"][0] == batch[0].n == batch.array["n"][0] == -7


def test_batches_and_arrays_may_be_kept(bus, ticks, long):
    arrays = []
    bus.subscribe("test.tick", lambda events: arrays.append(events.array))
    for n in range(3000):
        assert ticks.publish(n=n)
        if n % 500 == 0:
            assert bus.flush(long)
    assert bus.flush(long)
    gc.collect()
    addresses = [address_of(array) for array in arrays]
    assert len(set(addresses)) == len(addresses), "the engine took each run into fresh memory"
    assert np.concatenate([array["n"] for array in arrays]).tolist() == list(range(3000))


def test_memory_goes_with_its_last_holder(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)
    assert ticks.publish(n=1) and bus.flush(long)
    batch = weakref.ref(keep.batches[0])
    column = keep.batches[0].array["n"]
    keep.batches.clear()
    gc.collect()
    assert batch() is not None and column[0] == 1
    del column
    gc.collect()
    assert batch() is None


def test_the_gil_is_taken_once_for_each_batch(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)
    bus.subscribe(">", lambda events: None)
    for n in range(2000):
        assert ticks.publish(n=n)
        if n % 100 == 0:
            assert bus.flush(long)
    assert bus.flush(long)
    figures = bus.stats().python
    assert figures.gil_taken == figures.batches
    assert figures.events == 4000
    assert figures.batches >= 2 * 20
    assert len(keep.batches) <= figures.batches - 20
    assert sum(map(len, keep.batches)) == 2000


def test_a_burst_is_few_batches(bus, ticks, keep, long, eventually):
    started, go = threading.Event(), threading.Event()

    def first(events):
        started.set()
        go.wait(long)

    bus.subscribe("test.first", first)
    seen = bus.subscribe("test.tick", keep)
    assert bus.channel("test.first", dtype=[("n", "i8")]).publish(n=0) and started.wait(long)
    for n in range(5000):
        assert ticks.publish(n=n)
    assert eventually(lambda: seen.stats().offered == 5000)  # the workers feed while the dispatcher is held up
    go.set()
    assert bus.flush(long)
    assert keep.numbers == list(range(5000))
    assert len(keep.batches) < 100


def test_stamps_say_who_and_when(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)
    for n in range(10):
        assert ticks.publish(n=n)
    assert bus.flush(long)
    stamps = [record.stamp for batch in keep.batches for record in batch]
    assert [stamp.sequence for stamp in stamps] == list(range(1, 11))
    assert len({stamp.publisher for stamp in stamps}) == 1
    assert [stamp.time_ns for stamp in stamps] == sorted(stamp.time_ns for stamp in stamps)
    assert {stamp.time_from for stamp in stamps} <= {"publisher", "worker"}
    array = np.concatenate([batch.array["stamp"] for batch in keep.batches])
    assert array["sequence"].tolist() == list(range(1, 11))
    assert array["time_ns"].tolist() == [stamp.time_ns for stamp in stamps]


def test_records_read_fields_by_name_and_by_key(bus, ticks, keep, long):
    bus.subscribe("test.tick", keep)
    assert ticks.publish(n=1, x=2.5, word="gemm") and bus.flush(long)
    batch = keep.batches[0]
    record = batch[0]
    assert (record.n, record.x, record.word, record["word"]) == (1, 2.5, "gemm", "gemm")
    assert record._asdict() == {"n": 1, "x": 2.5, "word": "gemm"}
    assert repr(record) == "test.tick(n=1, x=2.5, word='gemm')"
    assert repr(batch) == "<1 event of test.tick>"
    assert record.channel == "test.tick"
    with pytest.raises(AttributeError, match="m"):
        _ = record.m
    with pytest.raises(KeyError):
        _ = record["m"]
    with pytest.raises(IndexError):
        _ = batch[1]
    assert batch[-1].n == 1
    del batch
    keep.batches.clear()
    gc.collect()
    assert record.word == "gemm", "a record keeps its batch"
