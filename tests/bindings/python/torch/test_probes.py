"""Does report() tell the truth if PyTorch differs from what we know? Each private name that we use is taken away in turn."""

import logging
import sys

import pytest
import torch
import torch._dynamo.backends.registry as registry
import torch.cuda._gpu_trace as gpu_trace
from torch._C._dynamo import eval_frame

import ringmain.torch
from ringmain.torch import backends

TRACE = logging.getLogger("torch.__trace")


@pytest.fixture
def report(bus, fresh_dynamo):
    """report() of one surface in PyTorch as it is now."""
    made = []

    def attach_and_report(name, **options):
        made.append(ringmain.torch.attach(bus, **options))
        return made[-1].report()[name]

    yield attach_and_report
    for attachment in made:
        attachment.detach()


def test_as_it_is_nothing_is_lacking(report):
    report("backend registry")
    whole = ringmain.torch.attach(ringmain.torch._attach._attached.bus).report()
    hooked = hasattr(torch.distributed.ProcessGroup, "register_pre_hook")
    known = {"torch.distributed": "" if hooked else "the ends of what C++ calls for (DDP, functional collectives), and hooks on it"}
    assert [surface.lacks for surface in whole.surfaces] == [known.get(surface.name, "") for surface in whole.surfaces], whole
    assert str(whole).count(", without") == (not hooked)


def test_a_trace_that_goes_to_another_logger_is_not_live(report, monkeypatch):
    monkeypatch.setattr(torch._logging._internal, "trace_log", logging.getLogger("torch.__trace_elsewhere"))
    said = report("structured trace")
    assert not said.live and "do not come to the logger" in said.why_not
    assert type(TRACE.handlers) is list


def test_a_trace_that_asks_nobody_is_live_without_a_choice(report, monkeypatch):
    def trace_structured(kind, metadata_fn=dict, **_):  # its argument has another name
        if TRACE.handlers:
            TRACE.debug("", extra={"metadata": {kind: metadata_fn()}, "payload": None})

    monkeypatch.setattr(torch._logging._internal, "trace_structured", trace_structured)
    said = report("structured trace")
    assert said.live and "every record" in said.lacks


def test_artifacts_without_names_are_lacking_their_choice(report, monkeypatch):
    def trace_structured_artifact(title, encoding, **options):
        torch._logging._internal.trace_structured("artifact", metadata_fn=lambda: {"name": title}, **options)

    monkeypatch.setattr(torch._logging._internal, "trace_structured_artifact", trace_structured_artifact)
    said = report("structured trace")
    assert said.live and "artifacts" in said.lacks


def test_no_other_handler_sees_what_is_tried_out(report):
    seen = []

    class Other(logging.Handler):
        def emit(self, record):
            seen.append(record.metadata)

    other = Other(logging.DEBUG)
    TRACE.addHandler(other)
    assert report("structured trace").live
    TRACE.removeHandler(other)
    assert seen == []


def test_what_fails_half_way_is_taken_out_again(report, monkeypatch):
    monkeypatch.setattr(torch._logging._internal, "trace_structured", lambda *_, **__: 1 // 0)
    said = report("structured trace")
    assert not said.live and "ZeroDivisionError" in said.why_not
    assert type(TRACE.handlers) is list and not any("ringmain" in type(h).__module__ for h in TRACE.handlers)


def test_file_names_that_are_not_kept_are_lacking(report, monkeypatch):
    monkeypatch.delattr(torch._logging.structured, "INTERN_TABLE")
    assert "names of files" in report("structured trace").lacks


@pytest.mark.parametrize("name", ["register_start_callback", "clear", "start_callbacks"])
def test_a_callback_handler_without_its_parts_is_not_live(report, monkeypatch, name):
    class Handler:
        start_callbacks, end_callbacks = [], []

        def register_start_callback(self, callback): ...

        def register_end_callback(self, callback): ...

        def clear(self): ...

    monkeypatch.setattr(torch._dynamo.callback, "callback_handler", Handler())
    said = report("compile callbacks")
    assert not said.live and "elsewhere" in said.why_not  # it takes callbacks, and keeps none
    delattr(Handler, name)
    ringmain.torch._attach._attached.detach()
    said = report("compile callbacks")
    assert not said.live and name in said.why_not


def test_callbacks_that_somebody_took_out_are_not_said_to_be_heard(report):
    report("compile callbacks")
    torch._dynamo.callback_handler.start_callbacks.clear()
    assert "took our callbacks" in ringmain.torch._attach._attached.report()["compile callbacks"].lacks


def test_a_reset_that_does_not_clear_the_handler_is_lacking(report, monkeypatch):
    monkeypatch.setattr(torch._dynamo, "reset", lambda: None)
    assert "resets" in report("compile callbacks").lacks


def test_a_guard_slot_that_keeps_nothing_is_not_live(report, monkeypatch):
    monkeypatch.setattr(eval_frame, "set_guard_complete_hook", lambda hook: None)
    said = report("guard verdicts")
    assert not said.live and "does not keep" in said.why_not


def test_a_guard_slot_that_was_taken_is_told(report, monkeypatch):
    kept = eval_frame.set_guard_complete_hook
    report("guard verdicts")
    kept(print)
    assert "took the slot" in ringmain.torch._attach._attached.report()["guard verdicts"].lacks
    assert kept(None) is print  # and it is still theirs


def test_registries_of_the_gpu_trace_that_are_gone_are_named(report, monkeypatch):
    monkeypatch.delattr(gpu_trace, "EventRecordCallbacks")
    said = report("GPU trace", gpu_trace=True)
    assert said.live and said.lacks == "EventRecord"


def test_a_registry_of_another_shape_is_not_live(report, monkeypatch):
    monkeypatch.delattr(registry, "_COMPILER_FNS")
    said = report("backend registry")
    assert not said.live and "_COMPILER_FNS" in said.why_not


def test_tags_that_are_kept_elsewhere_are_lacking(report, monkeypatch):
    backends.refresh()
    if hasattr(registry, "_BACKEND_TAGS"):
        monkeypatch.setattr(registry, "_BACKEND_TAGS", {})
    else:
        monkeypatch.delattr(registry.lookup_backend("eager"), "_tags")
    said = report("backend registry")
    assert said.live and "tags" in said.lacks
    assert "live, without tags" in str(ringmain.torch._attach._attached.report())


def test_what_cannot_even_be_looked_for_is_said(report, monkeypatch):
    report("compile callbacks")
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    assert "could not be looked for" in ringmain.torch._attach._attached.report()["compile callbacks"].lacks
