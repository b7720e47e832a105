"""attach(): what is live, what is left alone, and what comes back."""

import logging
import os
import threading

import pytest
import torch
import torch._dynamo.callback
import torch.cuda._gpu_trace as gpu_trace
from heard import Heard
from torch._C._dynamo import eval_frame

import ringmain
import ringmain.torch

TRACE = logging.getLogger("torch.__trace")


def compiled(function, **options):
    return torch.compile(function, backend="eager", **options)


def test_every_surface_of_this_pytorch_is_live_or_says_why_not(attached):
    report = attached.report()
    assert report.torch == torch.__version__
    for name in ("structured trace", "compile callbacks", "guard verdicts", "torch.monitor", "backend registry"):
        assert report[name].live, report
    if not torch.version.cuda:
        assert "not built for a GPU" in report["GPU trace"].why_not
    with pytest.raises(KeyError, match="structured trace"):
        report["telepathy"]
    assert "live" in str(report)


def test_attaching_the_same_bus_again_is_the_same_attachment(bus, attached):
    assert ringmain.torch.attach(bus) is attached
    assert attached.attached


def test_the_process_bus_may_be_attached_again_after_it_was_closed():
    first = ringmain.torch.attach()
    ringmain.Bus.process().close()
    with ringmain.torch.attach() as again:
        assert again is not first and again.attached and not first.attached
        assert again.bus is ringmain.Bus.process() and not again.bus.closed


def test_a_second_bus_is_refused_by_name_of_the_first(attached):
    with ringmain.Bus("another") as another, pytest.raises(ringmain.torch.AlreadyAttached, match="<bus 'the first'>"):
        ringmain.torch.attach(another)


def test_detach_puts_everything_back(bus, fresh_dynamo):
    def state():
        handler = torch._dynamo.callback_handler
        return (type(TRACE.handlers), list(TRACE.handlers), list(handler.start_callbacks),
                list(handler.end_callbacks), "clear" in vars(handler), eval_frame.set_guard_complete_hook,
                [list(getattr(gpu_trace, name).callback_list) for name in vars(gpu_trace) if "Callbacks" in name])

    before = state()
    attachment = ringmain.torch.attach(bus, gpu_trace=True)
    assert state() != before
    attachment.detach()
    attachment.detach()
    assert state() == before
    assert eval_frame.set_guard_complete_hook(None) is None  # the slot is empty
    assert not attachment.attached
    with ringmain.torch.attach(bus) as again:
        assert again is not attachment and again.report()["structured trace"].live


def test_what_is_not_asked_for_stays_out(bus, fresh_dynamo):
    with ringmain.torch.attach(bus, callbacks=False, trace=False, guards=False, gpu_trace=False, monitor=False,
                               backends=False, waits=False, profiler=False, distributed=False) as none:
        assert not [surface for surface in none.report().surfaces if surface.live]
        assert none.report()["guard verdicts"].why_not == "not asked for"


def test_a_record_that_nobody_wants_is_not_even_built(bus, fresh_dynamo):
    built = []

    def graph_text():
        built.append("graph")
        return "def forward(self): pass"

    torch._logging.trace_structured("str", lambda: ("", 0), expect_trace_id=False)  # PyTorch's own handler leaves
    with ringmain.torch.attach(bus):
        torch._logging.trace_structured("dynamo_output_graph", dict, payload_fn=graph_text, expect_trace_id=False)
        assert built == []
        breaks = bus.subscribe("compile.graph_break", lambda batch: None)
        torch._logging.trace_structured("dynamo_output_graph", dict, payload_fn=graph_text, expect_trace_id=False)
        assert built == []
        with bus.subscribe("compile.graph", lambda batch: None):
            torch._logging.trace_structured("dynamo_output_graph", dict, payload_fn=graph_text, expect_trace_id=False)
            assert built == ["graph"]
        breaks.remove()
    torch._logging.trace_structured("dynamo_output_graph", dict, payload_fn=graph_text, expect_trace_id=False)
    assert built == ["graph"]


def test_another_handler_of_the_trace_gets_everything(bus, fresh_dynamo):
    seen = []

    class Other(logging.Handler):
        def emit(self, record):
            seen.append(next(iter(record.metadata)))

    other = Other(logging.DEBUG)
    with ringmain.torch.attach(bus):
        TRACE.addHandler(other)
        compiled(lambda x: x + 1)(torch.ones(2))
        TRACE.removeHandler(other)
    assert "dynamo_output_graph" in seen and "describe_tensor" in seen


def test_what_goes_wrong_in_our_hooks_stays_in_them(bus, fresh_dynamo, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("broken on purpose")

    attachment = ringmain.torch.attach(bus)
    with bus.subscribe("compile.*", lambda batch: None):
        for name in ("record", "compile_started", "compile_ended", "publish", "wanted"):
            monkeypatch.setattr(attachment._publishers, name, broken)
        with caplog.at_level(logging.CRITICAL, "ringmain.torch"):
            run = compiled(lambda x: x * 2)
            assert run(torch.ones(2)).tolist() == run(torch.ones(2)).tolist() == [2.0, 2.0]
            assert run(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    report = attachment.report()
    attachment.detach()
    assert report["compile callbacks"].errors and "broken on purpose" in report["compile callbacks"].last_error
    assert report["structured trace"].errors


def test_the_guard_slot_seems_empty_to_others_and_their_verdict_counts(heard):
    run = compiled(lambda x: x - 1)
    run(torch.ones(2))
    asked = []

    def recompile_always(hit):
        asked.append(hit)
        return False

    assert eval_frame.set_guard_complete_hook(recompile_always) is None
    run(torch.ones(2))
    assert eval_frame.set_guard_complete_hook(None) is recompile_always
    run(torch.ones(2))
    assert asked == [True]
    assert [guard["what"] for guard in heard.on("compile.guard") if guard["what"] in ("hit", "miss")] == ["miss", "hit"]


def test_a_chained_guard_hook_that_raises_aborts_nothing(bus, fresh_dynamo):
    def broken(hit):
        raise RuntimeError("broken on purpose")

    eval_frame.set_guard_complete_hook(broken)
    attachment = ringmain.torch.attach(bus)
    run = compiled(lambda x: x - 2)
    assert run(torch.ones(1)).tolist() == run(torch.ones(1)).tolist() == [-1.0]
    report = attachment.report()["guard verdicts"]
    attachment.detach()
    assert eval_frame.set_guard_complete_hook(None) is broken
    assert report.errors == 1 and "broken on purpose" in report.last_error


def test_guard_verdicts_survive_guard_collectives(heard):
    run = compiled(lambda x: x - 3)
    run(torch.ones(2))
    assert torch.compiler.set_enable_guard_collectives(True) is False
    run(torch.ones(2))
    assert torch.compiler.set_enable_guard_collectives(False) is True
    run(torch.ones(2))
    assert [guard["what"] for guard in heard.on("compile.guard") if guard["what"] == "hit"] == ["hit", "hit"]


def test_a_veto_refuses_the_compile_and_says_cancelled(bus, heard):
    with bus.subscribe_inline("compile.start", lambda start: "no compiles while serving"):
        with pytest.raises(ringmain.torch.CompileVetoed, match="no compiles while serving"):
            compiled(lambda x: x * 5)(torch.ones(2))
    assert compiled(lambda x: x * 6)(torch.ones(2)).tolist() == [6.0, 6.0]
    ends = heard.on("compile.end")
    assert [end["outcome"] for end in ends] == ["cancelled", "completed"]
    assert ends[0]["reason"] == "no compiles while serving"


def test_compiles_are_heard_after_a_reset_and_the_reset_is_said(heard):
    compiled(lambda x: x * 7)(torch.ones(2))
    torch._dynamo.reset()
    compiled(lambda x: x * 8)(torch.ones(2))
    torch.compiler.reset()
    starts = heard.on("compile.start")
    assert [(start["frame"], start["reset"]) for start in starts] == [(0, starts[0]["reset"]),
                                                                      (0, starts[0]["reset"] + 1)]
    assert len(heard.on("compile.reset")) == 2


def test_logged_monitor_events_are_heard_entry_by_entry(heard):
    import datetime

    at = datetime.datetime(2026, 1, 2, 3, 4, 5)
    torch.monitor.log_event(torch.monitor.Event("loader", at, {"wait_ms": 2.5, "source": "disk", "full": True}))
    said = {event["key"]: event for event in heard.on("torch.monitor")}
    assert said["wait_ms"]["number"] == 2.5 and said["full"]["number"] == 1.0
    assert said["source"]["text"] == "disk" and said["source"]["number"] != said["source"]["number"]
    assert {event["name"] for event in said.values()} == {"loader"}
    assert said["full"]["logged_at_ns"] == int(at.timestamp() * 1e9)


def test_the_profiler_runs_with_all_hooks_in(heard):
    run = compiled(lambda x: (x + 9).sin())
    with torch.profiler.profile(record_shapes=True) as profile:
        run(torch.ones(2))
        run(torch.ones(2))
    assert any("sin" in event.key for event in profile.key_averages())
    assert len(heard.on("compile.start")) == 1


def test_a_compile_is_heard_from_any_thread(heard):
    thread = threading.Thread(target=lambda: compiled(lambda x: x + 10)(torch.ones(2)))
    thread.start()
    thread.join()
    [start] = heard.on("compile.start")
    assert start["thread"] not in (0, threading.get_native_id())


def test_known_backends_are_said_to_who_attaches_and_new_ones_when_they_come(bus, fresh_dynamo):
    listening = Heard(bus, "compile.backend")
    from ringmain.torch import backends

    with ringmain.torch.attach(bus):
        backends.register_backend(lambda graph, inputs: graph.forward, name="rm_said", tags=("debug", "own"))
        backends.unregister_backend("rm_said")
    said = [(event["what"], event["name"], event["tags"]) for event in listening.on("compile.backend")]
    assert ("registered", "inductor", "") in said and ("registered", "eager", "debug") in said
    assert said[-2:] == [("registered", "rm_said", "debug,own"), ("removed", "rm_said", "debug,own")]


def test_a_forked_child_compiles_as_ever_and_says_nothing(heard):
    compiled(lambda x: x + 12)(torch.ones(2))
    said = len(heard.on("compile.start"))
    child = os.fork()
    if child == 0:  # as a DataLoader's worker is
        try:
            os._exit(0 if compiled(lambda x: x + 13)(torch.ones(2)).tolist() == [14.0, 14.0] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(heard.on("compile.start")) == said
