"""Real compiles on the bus, against PyTorch's counters; the examples of PyTorch's own documentation as written."""

import torch
from heard import Heard
from torch._dynamo.utils import counters


def ids(events):
    return [(event["frame"], event["recompile"]) for event in events]


def test_a_branch_on_data_breaks_the_graph_and_the_resuming_frame_is_linked(heard):
    counters.clear()

    @torch.compile(backend="eager")
    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    for _ in range(3):
        toy_example(torch.ones(10), torch.ones(10))
    broke, resumed = [[e for e in heard.on("compile.graph_break") if e["what"] == what] for what in ("broke", "resumed")]
    assert len(broke) == sum(counters["unimplemented"].values()) == 1
    assert next(iter(counters["unimplemented"])).startswith(broke[0]["reason"])
    assert broke[0]["function"] == "toy_example" and broke[0]["file"] == __file__
    assert [(b["number"], r["resume_frame"]) for b, r in zip(broke, resumed, strict=True)] == [(broke[0]["number"], 1)]
    starts = heard.on("compile.start")
    assert ids(starts) == [(0, 0), (1, 0)]
    assert starts[1]["resumes_break"] == broke[0]["number"]
    graphs = heard.on("compile.graph")
    assert len(graphs) == counters["stats"]["unique_graphs"] == 2
    assert sum(graph["ops"] for graph in graphs) == counters["stats"]["calls_captured"]
    verdicts = [e["what"] for e in heard.on("compile.guard") if e["what"] in ("hit", "miss")]
    assert verdicts == ["hit"] * 4  # two later calls, two frames each


def test_a_loop_over_a_number_specialises_on_it_and_recompiles_for_each(heard):
    @torch.compile(backend="eager", dynamic=False)
    def loop(x, n):
        for _ in range(n):
            x = x + 1
        return x

    for n in (1, 2, 3, 2):
        assert loop(torch.zeros(1), n).item() == n
    assert ids(heard.on("compile.start")) == [(0, 0), (0, 1), (0, 2)]
    recompiles = heard.on("compile.recompile")
    assert ids(recompiles) == [(0, 1), (0, 2)]
    assert "n == 1" in recompiles[0]["reason"]
    failed = [e for e in heard.on("compile.guard") if e["what"] == "failed"]
    assert [(e["of_frame"], e["of_recompile"]) for e in failed[:1]] == [(0, 0)]
    assert "n == 1" in failed[0]["text"]
    assert [graph["ops"] for graph in heard.on("compile.graph")] == [1, 2, 3]


def test_a_shape_becomes_dynamic_when_it_changes(heard):
    @torch.compile(backend="eager")
    def double(x):
        return x * 2

    for length in (3, 4, 5, 6):
        double(torch.ones(length))
    assert ids(heard.on("compile.start")) == [(0, 0), (0, 1)]
    assert "expected 3, actual 4" in heard.on("compile.recompile")[0]["reason"]
    said = [(e["what"], e["source"]) for e in heard.on("compile.dynamic_shape")]
    assert ("automatic", "L['x']") in said
    assert ("created", "L['x'].size()[0]") in said
    assert heard.on("compile.graph")[1]["inputs"] == 2  # the size is one


def test_a_marked_dimension_is_a_symbol_from_the_start(heard):
    @torch.compile(backend="eager")
    def scaled(x):
        return x.cos() * x.shape[0]

    marked = torch.ones(6, 2)
    torch._dynamo.mark_dynamic(marked, 0)
    scaled(marked)
    scaled(torch.ones(9, 2))
    assert len(heard.on("compile.start")) == 1
    [created] = [e for e in heard.on("compile.dynamic_shape") if e["what"] == "created"]
    assert created["value"] == "6"


def test_beyond_the_recompile_limit_there_is_silence(heard):
    counters.clear()

    def powered(x, k):
        return x ** k

    with torch._dynamo.config.patch(recompile_limit=2, automatic_dynamic_shapes=False):
        run = torch.compile(powered, backend="eager")
        for k in range(2, 7):
            run(torch.ones(2), k)
    assert ids(heard.on("compile.start")) == [(0, 0), (0, 1)]
    [limit] = heard.on("compile.limit")
    assert (limit["what"], limit["limit"]) == ("recompile", 2)


def test_a_failing_backend_ends_its_compile_as_failed(heard):
    def refuse(graph, inputs):
        raise RuntimeError("refuses on purpose")

    for _ in range(2):
        try:
            torch.compile(lambda x: x.tan(), backend=refuse)(torch.ones(3))
        except torch._dynamo.exc.BackendCompilerFailed:
            pass
    ends = heard.on("compile.end")
    assert [end["outcome"] for end in ends] == ["failed", "failed"]
    assert {end["exception"] for end in ends} == {"BackendCompilerFailed"}
    assert "refuses on purpose" in ends[0]["reason"]


def test_start_and_end_of_each_compile_share_a_span_and_say_where(heard):
    def somewhere(x):
        return x + 11

    torch.compile(somewhere, backend="eager")(torch.ones(2))
    [start], [end] = heard.on("compile.start"), heard.on("compile.end")
    assert start["span"] == end["span"] != 0
    assert (start["file"], start["function"]) == (__file__, "somewhere")
    assert start["line"] == somewhere.__code__.co_firstlineno
    assert end["took_ns"] > 0 and start["outermost"] and end["outermost"]
    assert start["trigger"] == "dynamo"


def test_breaks_and_recompiles_have_their_whole_stack_and_every_reason(heard):
    def helper(x):
        torch._dynamo.graph_break()
        return x

    def called_with(x, k):
        return helper(x * k)

    run = torch.compile(called_with, backend="eager", dynamic=False)
    for k in (2, 3):
        run(torch.ones(3), k)
    frames = heard.on("compile.stack")
    first = heard.on("compile.graph_break")[0]
    stack = [f for f in frames if f["of"] == "graph_break" and f["number"] == first["number"]]
    assert [f["index"] for f in stack] == list(range(stack[0]["count"]))
    assert (stack[-1]["function"], stack[-1]["file"], stack[-1]["line"]) == ("helper", __file__, first["line"])
    assert stack[-1]["code"] == "torch._dynamo.graph_break()"
    [recompile] = [e for e in heard.on("compile.recompile") if e["function"] == "called_with"]
    assert (recompile["file"], recompile["line"]) == (__file__, called_with.__code__.co_firstlineno)
    failed = [e for e in heard.on("compile.guard") if e["what"] == "failed" and e["frame"] == recompile["frame"]]
    assert len(failed) == recompile["reasons"] == 1
    [start] = [e for e in heard.on("compile.start") if ids([e]) == ids([recompile])]
    stack = [f for f in frames if f["of"] == "start" and f["number"] == start["span"]]
    # PyTorch leaves the frames between the outer ones and the compiled one out where it compiles again.
    assert "pytest_pyfunc_call" in [f["function"] for f in stack] and stack[-1]["function"] == "called_with"
    assert len(stack) == stack[0]["count"]


def test_guards_one_by_one_and_code_come_where_they_are_asked_for(bus, attached):
    few, detail = Heard(bus, "compile.*"), Heard(bus, "compile.detail.*")

    def guarded(x):
        x = x.sin() + 21
        torch._dynamo.graph_break()
        return x * 2

    torch.compile(guarded, backend="eager")(torch.ones(4, 5))
    assert not [channel for channel, _ in few.events if "detail" in channel]
    guards = detail.on("compile.detail.guard")
    installed = [e for e in few.on("compile.guard") if e["what"] == "installed"]
    assert len(guards) == sum(e["count"] for e in installed) and len(installed) == 2
    tensor = next(g for g in guards if g["kind"] == "TENSOR_MATCH")
    assert tensor["source"] == "L['x']" and "size=[4, 5]" in tensor["check"] and tensor["function"] == "guarded"
    assert tensor["line"] == guarded.__code__.co_firstlineno + 1 and __file__.endswith(tensor["file"])
    codes = detail.on("compile.detail.code")
    graph = "".join(c["text"] for c in codes if c["what"] == "graph" and c["frame"] == 0)
    assert "sin" in graph and len(graph.encode()) == codes[0]["bytes"]
    # PyTorch writes the bytecode of what goes on after a break, and no other.
    sizes = {c["what"]: c["bytecode"] for c in codes if c["what"] != "graph"}
    assert sizes["original"] > 0 and sizes["modified"] > 0


def test_a_start_says_with_which_arguments_it_was_called_and_the_backend_has_a_name(heard):
    for number, (dynamic, fullgraph) in enumerate([(None, False), (True, True), (False, False)]):
        torch.compile(lambda x, n=number: x * 31 + n, backend="aot_eager", dynamic=dynamic, fullgraph=fullgraph)(torch.ones(2))
    said = [(e["backend"], e["dynamic"], e["fullgraph"]) for e in heard.on("compile.start")]
    assert said == [("aot_eager", "automatic", "no"), ("aot_eager", "on", "yes"), ("aot_eager", "off", "no")]
    assert [e["dynamic"] for e in heard.on("compile.metrics")] == ["automatic", "on", "off"]
    called = [e["name"] for e in heard.on("compile.backend") if e["what"] in ("begin", "end")]
    assert called == ["aot_eager"] * 6


def test_a_break_in_a_compile_that_failed_is_not_resumed_by_another_function(heard):
    def refuse(graph, inputs):
        raise RuntimeError("refuses on purpose")

    def make_doomed():
        def step(x):
            x = x.tan()
            torch._dynamo.graph_break()
            return x + 1
        return step

    factor = {"value": 2}

    def make_fine():
        def step(x):
            x = x.cos()
            torch._dynamo.graph_break()
            return x * factor["value"]  # a guard of the rest alone
        return step

    fine = torch.compile(make_fine(), backend="eager")
    fine(torch.ones(3))
    try:
        torch.compile(make_doomed(), backend=refuse)(torch.ones(3))
    except torch._dynamo.exc.BackendCompilerFailed:
        pass
    factor["value"] = 3
    fine(torch.ones(3))
    broke, resumed = [[e for e in heard.on("compile.graph_break") if e["what"] == what] for what in ("broke", "resumed")]
    assert ids(broke) == [(0, 0), (2, 0)]
    assert ids(heard.on("compile.recompile")) == [(1, 1)]
    assert [(e["number"], e["resume_frame"], e["resume_recompile"]) for e in resumed] == [(broke[0]["number"], 1, 0)]
