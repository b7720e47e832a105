"""The ten kinds of PyTorch's GPU trace on the bus, through its genuine C++ dispatch and without a GPU."""

import gpu_dispatch
import pytest
import torch
from heard import Heard

import ringmain
import ringmain.torch

CHANNELS = ["cuda.stream_creation", "cuda.event_creation", "cuda.event_record", "cuda.event_wait", "torch.memory_block",
            "cuda.stream_synchronization", "cuda.event_synchronization", "cuda.device_synchronization",
            "torch.memory_block", "cuda.event_deletion"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return gpu_dispatch.build(tmp_path_factory.mktemp("gpu_bus"))


@pytest.fixture
def listening(bus):
    with ringmain.torch.attach(bus, gpu_trace=True) as attachment:
        assert attachment.report()["GPU trace"].live
        yield Heard(bus, "cuda.*", "torch.memory_block")
    assert not attachment.report()["GPU trace"].errors


@pytest.mark.parametrize("elsewhere", [False, True], ids=["this_thread", "a_foreign_thread"])
def test_all_ten_kinds_arrive_with_their_handles(library, listening, elsewhere):
    gpu_dispatch.fire(library, elsewhere=elsewhere)
    said = dict(zip(CHANNELS, gpu_dispatch.SAID, strict=True))
    assert sorted(channel for channel, _ in listening.events) == sorted(CHANNELS)
    for channel, fields in listening.events:
        for name, value in (("event", gpu_dispatch.EVENT), ("stream", gpu_dispatch.STREAM),
                            ("address", gpu_dispatch.ADDRESS)):
            if name in fields and value in said[channel][1]:
                assert fields[name] == value, (channel, fields)
        if channel.startswith("cuda."):
            assert fields["layer"] == "torch"
            assert fields["phase"] == ("begin" if channel.endswith("synchronization") else "instant")
            assert fields["device"] == -1  # PyTorch does not say


def test_a_handle_that_comes_again_has_another_generation(library, listening):
    gpu_dispatch.fire(library, times=2)
    gpu_dispatch.fire(library, event=0xBEEF)
    records = [(e["event"], e["generation"]) for e in listening.on("cuda.event_record")]
    assert records == [(gpu_dispatch.EVENT, 1), (gpu_dispatch.EVENT, 2), (0xBEEF, 1)]
    blocks = [(e["freed"], e["generation"]) for e in listening.on("torch.memory_block")]
    assert blocks == [(False, 1), (True, 1), (False, 2), (True, 2), (False, 3), (True, 3)]


def test_a_handle_whose_making_was_not_seen_has_generation_zero(listening):
    torch.cuda._gpu_trace.EventRecordCallbacks.fire_callbacks(77, 0)
    torch.cuda._gpu_trace.MemoryAllocationCallbacks.fire_callbacks(88, 4096)  # newer revisions say more
    [record], [block] = listening.on("cuda.event_record"), listening.on("torch.memory_block")
    assert (record["event"], record["stream"], record["generation"]) == (77, 0, 0)
    assert (block["address"], block["generation"]) == (88, 1)


def test_ordered_as_they_were_said(library, bus, listening):
    order = []
    for channel in set(CHANNELS):
        bus.subscribe_inline(channel, lambda event: order.append(event.channel))
    gpu_dispatch.fire(library, times=3)
    assert order == CHANNELS * 3
