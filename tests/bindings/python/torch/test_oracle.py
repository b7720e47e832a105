"""One run of a program, reported twice: by ringmain's events, and by PyTorch's own log, handler and counters."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch_log


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oracle")
    environment = os.environ | {"TORCH_TRACE": str(folder / "trace"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("compile_program.py")), folder / "events.json"],
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "events.json").read_text()), torch_log.read(folder / "trace")


@pytest.fixture
def events(run):
    said = {}
    for channel, fields in run[0]["events"]:
        said.setdefault(channel, []).append(fields)
    return said


@pytest.fixture
def log(run):
    return run[1]


def ids(said):
    return Counter((event["frame"], event["recompile"]) for event in said)


def logged_ids(metadatas):
    return Counter(torch_log.id_of(metadata) for metadata in metadatas)


def test_all_that_we_hook_into_was_live_and_nothing_of_ours_failed(run):
    report = run[0]["report"]
    # Without a GPU; on a bus that is not the process's; a profiler that needs nothing of CUDA's source.
    not_here = {"GPU trace", "wait counters", "torch.profiler"}
    assert all(live for name, live in report.items() if name not in not_here), report
    assert run[0]["errors"] == []


def test_every_compile_starts_and_ends_once(events, log):
    logged = [m for _, m, _ in torch_log.of_kind(log, "dynamo_start")]
    backwards = [m for _, m, _ in torch_log.of_kind(log, "bwd_compilation_metrics")]
    starts = events["compile.start"]
    assert ids(e for e in starts if e["trigger"] == "dynamo") == logged_ids(logged)
    assert ids(e for e in starts if e["trigger"] == "lazy_backward") == logged_ids(backwards)
    assert len(logged) >= 13 and len(backwards) == 3
    spans = Counter(e["span"] for e in starts)
    assert spans == Counter(e["span"] for e in events["compile.end"])
    assert set(spans.values()) == {1}


def test_outcomes_are_those_of_pytorchs_metrics(events, log):
    limits = {torch_log.id_of(m) for value, m, _ in torch_log.of_kind(log, "compilation_metrics")
              if "recompile_limit" in (value["fail_reason"] or "")}
    failed = Counter((torch_log.id_of(m), value["fail_type"]) for value, m, _ in torch_log.of_kind(
        log, "compilation_metrics") if value["fail_type"] and torch_log.id_of(m) not in limits)
    ends = events["compile.end"]
    said = Counter(((e["frame"], e["recompile"]), e["exception"].rsplit(".", 1)[-1]) for e in ends
                   if e["outcome"] == "failed")
    assert Counter({(i, kind.rsplit(".", 1)[-1]): n for (i, kind), n in failed.items()}) == said
    assert {e["outcome"] for e in ends if e["trigger"] != "cudagraph_recording"} == {"failed", "completed"}
    assert [e["outcome"] for e in ends if e["trigger"] == "cudagraph_recording"] == ["unknown"]  # nobody says


def test_the_outermost_pairs_are_those_of_pytorchs_handler(run, events):
    told = [(edge, trigger.lower(), text) for edge, trigger, text in run[0]["pairs"]]
    said = [("start" if channel == "compile.start" else "end", e["trigger"], e["text"])
            for channel, e in run[0]["events"] if channel in ("compile.start", "compile.end") and e["outermost"]]
    assert Counter(told) == Counter(said)
    inside = [e for e in events["compile.start"] if not e["outermost"]]
    assert [(e["trigger"], e["depth"]) for e in inside] == [("dynamo", 1)]  # the forward inside the other's backward


def test_graphs_breaks_and_guards_are_those_of_the_log(events, log):
    assert ids(events["compile.graph"]) == logged_ids(m for _, m, _ in torch_log.of_kind(log, "dynamo_output_graph"))
    breaks = torch_log.artifacts(log, "dynamo_graph_break_reason")
    broke = [e for e in events["compile.graph_break"] if e["what"] == "broke"]
    assert ids(broke) == logged_ids(m for m, _ in breaks)
    for said, (_, text) in zip(broke, breaks, strict=True):
        assert said["reason"] and said["reason"] in text
    installed = [e for e in events["compile.guard"] if e["what"] == "installed"]
    assert ids(installed) == logged_ids(m for _, m, _ in torch_log.of_kind(log, "dynamo_cpp_guards_str"))


def test_the_resuming_frame_names_its_break(events):
    resumed = [e for e in events["compile.graph_break"] if e["what"] == "resumed"]
    links = {(e["resume_frame"], e["resume_recompile"], e["number"]) for e in resumed}
    assert links == {(e["frame"], e["recompile"], e["resumes_break"]) for e in events["compile.start"]
                     if e["resumes_break"]}
    assert len(resumed) == 2  # before the reset, and after it


def test_recompiles_carry_pytorchs_reasons(events, log):
    logged = torch_log.artifacts(log, "recompile_reasons")
    said = events["compile.recompile"]
    assert ids(said) == logged_ids(m for m, _ in logged)
    for event, (_, text) in zip(said, logged, strict=True):
        reasons = json.loads(text) if text.startswith(("[", '"')) else text
        reasons = [reasons] if isinstance(reasons, str) else reasons
        assert event["reasons"] == len(reasons)
        assert event["reason"] in reasons
    [limit] = events["compile.limit"]
    assert limit["limit"] == 3


def test_caches_symbols_phases_and_metrics_are_counted_as_in_the_log(events, log):
    for layer, name in (("fx_graph", "fx_graph_cache"), ("aot_autograd", "aotautograd_cache")):
        for what in ("hit", "miss", "bypass"):
            said = [e for e in events["compile.cache"] if e["layer"] == layer and e["what"] == what]
            assert ids(said) == logged_ids(m for m, _ in torch_log.artifacts(log, f"{name}_{what}")), (layer, what)
    created = [e for e in events["compile.dynamic_shape"] if e["what"] == "created"]
    symbols = torch_log.of_kind(log, "create_symbol")
    assert Counter(e["symbol"] for e in created) == Counter(value["symbol"] for value, _, _ in symbols)
    edges = Counter(json.loads(payload)["ph"] for _, _, payload in torch_log.of_kind(log, "chromium_event"))
    said = Counter(e["edge"] for e in events["compile.phase"])
    assert (said["begin"], said["end"]) == (edges["B"], edges["E"])
    assert len(events["compile.metrics"]) == len(torch_log.of_kind(log, "compilation_metrics")) + len(
        torch_log.of_kind(log, "bwd_compilation_metrics"))


def test_pytorchs_counters_agree(run, events):
    counters = run[0]["counters"]
    assert sum(counters["graph_break"].values()) == len(
        [e for e in events["compile.graph_break"] if e["what"] == "broke" and "graph_break()" in e["reason"]])
    hits = [e for e in events["compile.cache"] if e["layer"] == "fx_graph"]
    assert counters["inductor"]["fxgraph_cache_miss"] == len([e for e in hits if e["what"] == "miss"])
    assert counters["aot_autograd"]["autograd_cache_hit"] == len(
        [e for e in events["compile.cache"] if e["layer"] == "aot_autograd" and e["what"] == "hit"])


def test_the_reset_is_said_and_the_ids_behind_it_are_others(events):
    [reset] = events["compile.reset"]
    assert reset["inferred"] is False
    firsts = [e for e in events["compile.start"] if (e["frame"], e["recompile"], e["trigger"]) == (0, 0, "dynamo")]
    assert [e["reset"] for e in firsts] == [reset["reset"] - 1, reset["reset"]]
