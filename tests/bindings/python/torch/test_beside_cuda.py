"""PyTorch's GPU trace beside CUDA's own source: each call is told once, by the one or the other, and blocks go on.

The source is played by its notices; what fires is PyTorch's genuine C++ dispatch.
"""

import gpu_dispatch
import pytest
from heard import Heard

import ringmain
import ringmain.torch

CALLS = ["cuda.device_synchronization", "cuda.event_creation", "cuda.event_deletion", "cuda.event_record",
         "cuda.event_synchronization", "cuda.event_wait", "cuda.stream_creation", "cuda.stream_synchronization"]
BLOCKS = ["torch.memory_block"] * 2


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return gpu_dispatch.build(tmp_path_factory.mktemp("beside_cuda"))


@pytest.fixture
def told(bus, library):
    """What one round of the ten kinds says."""
    listening = Heard(bus, "cuda.*", "torch.memory_block")

    def round_of_all(**options):
        listening.forget()
        gpu_dispatch.fire(library, **options)
        return sorted(channel for channel, _ in listening.events)

    return round_of_all


@pytest.fixture
def trace(bus):
    with ringmain.torch.attach(bus, gpu_trace=True) as attachment:
        yield attachment
    assert not attachment.report()["GPU trace"].errors


def say(bus, state):
    assert bus.publish("cuda.source", state=state)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["this_thread", "a_foreign_thread"])
@pytest.mark.parametrize("end", ["detached", "lent", "lost"])
def test_while_the_source_tells_calls_pytorch_tells_blocks_only(bus, trace, told, end, elsewhere):
    assert told(elsewhere=elsewhere) == CALLS + BLOCKS
    for _ in range(2):
        say(bus, "attached")
        assert told(elsewhere=elsewhere) == BLOCKS
        say(bus, end)
        assert told(elsewhere=elsewhere) == CALLS + BLOCKS


def test_a_source_that_could_not_attach_silences_nothing(bus, trace, told):
    say(bus, "unavailable")
    assert told() == CALLS + BLOCKS
    say(bus, "attached")
    say(bus, "unavailable")  # a second one that was refused
    assert told() == BLOCKS


def test_a_source_on_another_bus_silences_nothing_here(bus, trace, told):
    with ringmain.Bus("another") as other:
        say(other, "attached")
        assert told() == CALLS + BLOCKS


def test_generations_go_on_while_pytorch_is_silent(bus, library, trace):
    listening = Heard(bus, "cuda.event_record")
    gpu_dispatch.fire(library)
    say(bus, "attached")
    gpu_dispatch.fire(library, times=5)
    say(bus, "detached")
    gpu_dispatch.fire(library)
    assert [event["generation"] for event in listening.on("cuda.event_record")] == [1, 7]


def test_the_report_says_who_tells_the_calls(bus, trace):
    assert trace.report()["GPU trace"].lacks == ""
    say(bus, "attached")
    assert trace.report()["GPU trace"].lacks == "its cuda.* events, which CUDA's own source says now"
    say(bus, "lent")
    assert trace.report()["GPU trace"].lacks == ""


def test_a_trace_that_is_detached_hears_of_the_source_no_more(bus, library):
    for _ in range(3):
        with ringmain.torch.attach(bus, gpu_trace=True) as attachment:
            assert attachment.report()["GPU trace"].live
        assert [found.name for found in bus.stats().subscriptions] == []
