"""ringmain.torch.gpu_trace against torch.cuda._gpu_trace, through PyTorch's own C++ dispatch."""

import inspect
import logging
import re
import threading

import gpu_dispatch
import pytest
import torch.cuda._gpu_trace as theirs

import ringmain
from ringmain.torch import gpu_trace as ours
from ringmain.torch._gpu import KINDS as KINDS_ON_THE_BUS
from ringmain.torch._publishers import MemoryBlock

KINDS = [kind for kind, _ in gpu_dispatch.SAID]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return gpu_dispatch.build(tmp_path_factory.mktemp("gpu_trace"))


@pytest.fixture(autouse=True)
def leaves_nothing_behind():
    yield
    for kind in KINDS:
        registry(ours, kind).clear()
        assert registry(theirs, kind).callback_list == []


def registry(module, kind):
    return getattr(module, f"{kind}Callbacks")


def register_function(module, kind):
    name = re.sub(r"(?<!^)([A-Z])", r"_\1", kind).lower()
    return getattr(module, f"register_callback_for_{name}")


def register(module, kind, callback):
    return register_function(module, kind)(callback)


def arguments_of(module):
    """What each kind's callbacks are given, as the module itself says: {"EventRecord": ("int", "int")}."""
    told = {}
    for name, annotation in vars(module)["__annotations__"].items():
        kind = name.removesuffix("Callbacks")
        words = re.findall(r"int|\w+", re.search(r"\[(.*)\]", str(annotation)).group(1))
        cb = inspect.signature(register_function(module, kind)).parameters["cb"].annotation
        assert re.findall(r"int|\w+", re.search(r"\[\[(.*?)\]", str(cb)).group(1)) == words, kind
        told[kind] = tuple(words)
    return told


def test_the_ten_registries_have_the_originals_names_and_arguments():
    assert {name for name, found in vars(theirs).items() if type(found).__name__ == "CallbackRegistry"} == {
        f"{kind}Callbacks" for kind in KINDS}
    assert [registry(ours, kind).name for kind in KINDS] == [registry(theirs, kind).name for kind in KINDS]
    said = {kind: ("int",) * len(values) for kind, values in gpu_dispatch.SAID}
    assert arguments_of(theirs) == arguments_of(ours) == said


def test_the_bus_hears_the_same_ten_with_the_same_arguments(bus):
    assert {kind: len(names) for kind, (_, names) in KINDS_ON_THE_BUS.items()} == {
        kind: len(arguments) for kind, arguments in arguments_of(theirs).items()}
    for kind, (channel, names) in KINDS_ON_THE_BUS.items():
        described = bus.channel(MemoryBlock if channel == "torch.memory_block" else channel).type
        assert set(names) <= {field[0] for field in described.fields}, kind
        if channel != "torch.memory_block":
            assert channel == "cuda." + re.sub(r"(?<!^)([A-Z])", r"_\1", kind).lower()


@pytest.mark.parametrize("elsewhere", [False, True], ids=["this_thread", "a_foreign_thread"])
def test_all_ten_kinds_arrive_from_pytorchs_dispatch_in_order(library, elsewhere):
    said = []
    for kind in KINDS:
        register(ours, kind, lambda *args, kind=kind: said.append((kind, args)))
    gpu_dispatch.fire(library, times=2, elsewhere=elsewhere)
    assert said == gpu_dispatch.SAID * 2


def test_fired_by_hand_only_ours_are_called():
    said = []
    ours.EventRecordCallbacks.add_callback(lambda *args: said.append(args))
    ours.EventRecordCallbacks.fire_callbacks(1, 2)
    theirs.EventRecordCallbacks.fire_callbacks(3, 4)
    assert said == [(1, 2), (3, 4)]


def test_a_callback_can_be_taken_away_and_then_nothing_stands_in_pytorch(library):
    assert not hasattr(theirs.EventCreationCallbacks, "remove_callback")
    said = []
    handle = ours.register_callback_for_event_creation(said.append)
    gpu_dispatch.fire(library)
    assert handle.remove() is True and handle.remove() is False
    gpu_dispatch.fire(library)
    assert said == [gpu_dispatch.EVENT]
    assert theirs.EventCreationCallbacks.callback_list == []  # after the next event, the stand-in went as well


def test_remove_by_callable_takes_the_first_equal_one():
    said = []
    for _ in range(2):
        ours.register_callback_for_memory_allocation(said.append)
    assert ours.MemoryAllocationCallbacks.remove_callback(said.append) is True
    ours.MemoryAllocationCallbacks.fire_callbacks(7)
    assert said == [7]
    assert ours.MemoryAllocationCallbacks.remove_callback(print) is False


@pytest.mark.parametrize("module", [theirs, ours], ids=["theirs", "ours"])
def test_what_one_raises_is_logged_with_the_registrys_name_and_the_next_is_called(module, caplog):
    said = []

    def broken(_):
        raise RuntimeError("broken subscriber")

    register(module, "EventDeletion", broken)
    register(module, "EventDeletion", said.append)
    with caplog.at_level(logging.ERROR):
        registry(module, "EventDeletion").fire_callbacks(9)
    assert said == [9]
    assert "Exception in callback for CUDA event deletion registered with gpu trace" in caplog.text
    assert "broken subscriber" in caplog.text
    registry(theirs, "EventDeletion").callback_list.clear()


def test_callbacks_may_come_and_go_while_others_fire(library):
    stop, wrong = threading.Event(), []

    def come_and_go():
        while not stop.is_set():
            handle = ours.register_callback_for_event_wait(lambda event, stream: None)
            if not handle.remove():
                wrong.append("was not attached")

    thread = threading.Thread(target=come_and_go)
    said = []
    ours.register_callback_for_event_wait(lambda *args: said.append(args))
    thread.start()
    for _ in range(50):
        gpu_dispatch.fire(library, times=10)
    stop.set()
    thread.join()
    assert not wrong
    assert len(said) == 500
