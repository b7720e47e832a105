"""ringmain.torch.backends against torch._dynamo.backends.registry: each defect is shown on PyTorch's own first."""

import sys
import threading
from importlib import metadata

import pytest
import torch
import torch._dynamo.backends.registry as theirs

from ringmain.torch import backends as ours

# From 2.14 on PyTorch keeps tags by name, and does not overwrite an entry point of a function's name.
TAGS_BY_NAME = hasattr(theirs, "_BACKEND_TAGS")


@pytest.fixture(autouse=True)
def leaves_no_names_behind():
    ours.refresh()
    tables = ours._entries, theirs._BACKENDS, theirs._COMPILER_FNS, getattr(theirs, "_BACKEND_TAGS", {})
    known = [set(table) for table in tables]
    yield
    for table, names in zip(tables, known, strict=True):
        for name in set(table) - names:
            del table[name]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Installs a distribution with the given entry points and module, as pip would; returns how often it loaded."""
    def install(entry_points, module):
        (tmp_path / "rm_backend_plugin.py").write_text(module)
        folder = tmp_path / "rm_backend_plugin-1.0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: rm-backend-plugin\nVersion: 1.0\n")
        lines = "".join(f"{line}\n" for line in entry_points)
        (folder / "entry_points.txt").write_text(f"[{ours.GROUP}]\n{lines}")
        monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    sys.modules.pop("rm_backend_plugin", None)


def eager(graph, inputs):
    return graph.forward


@pytest.mark.parametrize("module", [theirs, ours], ids=["theirs", "ours"])
def test_a_backend_is_registered_bare_with_arguments_or_by_a_call(module):
    @module.register_backend
    def rm_bare(graph, inputs):
        return graph.forward

    @module.register_backend(name="rm_named", tags=("debug",))
    def other(graph, inputs):
        return graph.forward

    module.register_backend(lambda graph, inputs: graph.forward, name="rm_called")
    module.register_debug_backend(lambda graph, inputs: graph.forward, name="rm_debug")
    module.register_experimental_backend(name="rm_experimental")(lambda graph, inputs: graph.forward)
    assert module.lookup_backend("rm_bare") is rm_bare
    assert module.lookup_backend("rm_named") is other
    assert module.lookup_backend(eager) is eager
    shown = module.list_backends()
    assert shown == sorted(shown)
    assert {"rm_bare", "rm_called"} <= set(shown)
    assert not {"rm_named", "rm_debug", "rm_experimental"} & set(shown)
    assert {"rm_named", "rm_debug", "rm_experimental", "eager"} <= set(module.list_backends(None))
    assert "rm_named" in module.list_backends(exclude_tags=("experimental",))


def test_what_is_registered_here_serves_torch_compile(fresh_dynamo):
    seen = []

    @ours.register_backend
    def rm_counts(graph, inputs):
        seen.append(len(inputs))
        return graph.forward

    assert torch.compile(lambda x: x + 1, backend="rm_counts")(torch.ones(2)).tolist() == [2.0, 2.0]
    assert seen == [1]


def test_pytorchs_own_backends_are_found_and_listed():
    assert ours.lookup_backend("eager") is theirs.lookup_backend("eager")
    assert ours.list_backends() == theirs.list_backends()
    assert ours.list_backends(()) == theirs.list_backends(())
    assert ours.list_backends(("debug",)) == theirs.list_backends(("debug",))
    assert len(ours.list_backends()) < len(ours.list_backends(()))


def test_a_taken_name_is_a_typed_error_or_replaced_on_purpose():
    for module in (theirs, ours):
        module.register_backend(eager, name=f"rm_taken_{module is ours}")
        with pytest.raises(AssertionError) as error:
            module.register_backend(eager, name=f"rm_taken_{module is ours}")
    assert type(error.value) is ours.DuplicateBackend
    assert "replace=True" in str(error.value)
    replaced = ours.register_backend(lambda *_: None, name="rm_taken_True", replace=True)
    assert ours.lookup_backend("rm_taken_True") is replaced
    with pytest.raises(ours.DuplicateBackend, match="from torch"):
        ours.register_backend(eager, name="inductor")
    with pytest.raises(ours.NoBackend):
        ours.register_backend(7, name="rm_seven")


def test_an_entry_points_name_is_not_overwritten_by_a_function_that_bears_it():
    theirs._BACKENDS["rm_both"] = metadata.EntryPoint("rm_both", "rm_backend_plugin:made", ours.GROUP)
    theirs.register_backend(eager, name="rm_both")
    # Before, the entry point is gone: its guard compares a function with names.
    assert (theirs._BACKENDS["rm_both"] is not None) == TAGS_BY_NAME

    ours.register_backend(eager, name="rm_both_ours")
    assert ours.lookup_backend("rm_both_ours") is eager
    with pytest.raises(ours.DuplicateBackend):
        ours.register_backend(lambda *_: None, name="rm_both_ours")


def test_tags_belong_to_the_name_not_to_the_function():
    def shared(graph, inputs):
        return graph.forward

    theirs.register_backend(shared, name="rm_shown", tags=("debug",))
    theirs.register_backend(shared, name="rm_hidden")
    assert ("rm_shown" in theirs.list_backends()) != TAGS_BY_NAME  # it was registered as a debug backend

    def ours_shared(graph, inputs):
        return graph.forward

    ours.register_backend(ours_shared, name="rm_ours_hidden", tags=("debug",))
    ours.register_backend(ours_shared, name="rm_ours_shown")
    assert "rm_ours_shown" in ours.list_backends()
    assert "rm_ours_hidden" not in ours.list_backends()


def test_a_half_registered_name_is_absent():
    theirs._BACKENDS["rm_half"] = None
    with pytest.raises(KeyError):
        theirs.lookup_backend("rm_half")
    with pytest.raises(ours.InvalidBackend):
        ours.lookup_backend("rm_half")
    assert "rm_half" not in ours.list_backends(None)


def test_an_unknown_name_is_answered_with_the_close_one():
    with pytest.raises(ours.InvalidBackend, match="Did you mean 'inductor'"):
        ours.lookup_backend("inducter")
    with pytest.raises(ours.InvalidBackend, match="eager"):
        ours.lookup_backend("zzz")


def test_a_plugin_that_comes_later_is_found_without_being_loaded(plugin):
    theirs.list_backends()
    plugin(["rm_late = rm_backend_plugin:made", "rm_late_debug = rm_backend_plugin:made [debug]"],
           "def made(graph, inputs): return graph.forward\n")
    assert "rm_late" not in theirs.list_backends()  # looked for once, for ever
    shown = ours.list_backends()
    assert "rm_late" in shown and "rm_late_debug" not in shown  # tags are known before it is loaded
    assert "rm_backend_plugin" not in sys.modules
    assert "rm_late" in theirs.list_backends()  # and now PyTorch knows it too
    assert ours.lookup_backend("rm_late").__module__ == "rm_backend_plugin"


def test_a_failed_load_says_why_and_is_tried_again(plugin, tmp_path):
    plugin(["rm_flaky = rm_backend_plugin:made"], "raise OSError('no licence')\n")
    events = []
    with ours.subscribe(events.append):
        with pytest.raises(ours.BackendLoadError, match="no licence"):
            ours.lookup_backend("rm_flaky")
        (tmp_path / "rm_backend_plugin.py").write_text("def made(graph, inputs): return graph.forward, 'mended'\n")
        import importlib
        importlib.invalidate_caches()
        assert ours.lookup_backend("rm_flaky").__name__ == "made"
    assert [(e.what, e.name) for e in events] == [("registered", "rm_flaky"), ("load_failed", "rm_flaky"),
                                                  ("loaded", "rm_flaky")]
    assert "no licence" in events[1].reason


def test_a_plugin_is_loaded_once_however_many_threads_ask(plugin):
    plugin(["rm_once = rm_backend_plugin:made"],
           "import builtins\nbuiltins.rm_loads = getattr(builtins, 'rm_loads', 0) + 1\n"
           "def made(graph, inputs): return graph.forward\n")
    events, found, barrier = [], [], threading.Barrier(8)

    def ask():
        barrier.wait()
        found.append(ours.lookup_backend("rm_once"))

    with ours.subscribe(events.append):
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(found)) == 1 and len(found) == 8
    assert [e.what for e in events] == ["registered", "loaded"]


def test_registrations_can_be_heard_pytorchs_own_too():
    events, known = [], []
    with ours.subscribe(known.append, backfill=True), ours.subscribe(events.append):
        ours.register_backend(eager, name="rm_heard", tags=("experimental",))
        theirs.register_backend(eager, name="rm_heard_theirs")
        ours.observe()
        assert ours.unregister_backend("rm_heard") is True
        assert ours.unregister_backend("rm_heard") is False
    assert ("registered", "inductor", "torch") in [(e.what, e.name, e.origin) for e in known]
    assert next(e.tags for e in known if e.name == "eager") == ("debug",)
    assert [(e.what, e.name, e.origin) for e in events] == [
        ("registered", "rm_heard", "ringmain"), ("registered", "rm_heard_theirs", "torch"),
        ("unregistered", "rm_heard", "ringmain")]
    with pytest.raises(ours.InvalidBackend):
        ours.lookup_backend("rm_heard")
    assert "rm_heard" not in theirs._COMPILER_FNS


def test_what_pytorch_keeps_of_ours_is_not_taken_for_its_own():
    class Maker:
        def compile(self, graph, inputs):
            return graph.forward

    made = Maker()
    events = []
    with ours.subscribe(events.append):
        ours.register_backend(made.compile, name="rm_bound", tags=("debug",))  # a bound method has no attributes
        ours.refresh()
        assert "rm_bound" in ours.list_backends(()) and "rm_bound" in theirs.list_backends(())
        assert "rm_bound" not in ours.list_backends() and "rm_bound" not in theirs.list_backends()
        assert ours.lookup_backend("rm_bound") == made.compile
        theirs._COMPILER_FNS.pop("rm_bound")
        theirs._BACKENDS.pop("rm_bound")
        assert "rm_bound" not in ours.list_backends(())  # gone there is gone here
    assert [(e.what, e.name, e.origin) for e in events] == [("registered", "rm_bound", "ringmain"),
                                                            ("unregistered", "rm_bound", "ringmain")]
