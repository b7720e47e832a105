"""Is everything there that PyTorch's modules have, for code that changes its import and nothing else?

Names, members and arguments are read from PyTorch's own source, of the version at hand.
"""

import ast
import inspect
import pickle
import subprocess
import sys

import pytest
import torch
import torch._dynamo.backends.registry
import torch._dynamo.callback
import torch._dynamo.exc
import torch.cuda._gpu_trace

from ringmain.torch import backends, callback, gpu_trace

MODULES = {torch._dynamo.callback: callback, torch._dynamo.backends.registry: backends,
           torch.cuda._gpu_trace: gpu_trace}
LEFT_OUT = {}  # "module.name": why. Nothing, so far
pairs = pytest.mark.parametrize("theirs, ours", MODULES.items(), ids=[m.__name__ for m in MODULES])


def public_names(module):
    """What the module itself defines at its top."""
    names = set()
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        for target in [*getattr(node, "targets", ()), getattr(node, "target", None)]:
            if isinstance(target, ast.Name):
                names.add(target.id)
    return {name for name in names if not name.startswith("_")}


@pairs
def test_every_public_name_is_there_or_left_out_for_a_reason(theirs, ours):
    names = public_names(theirs)
    assert len(names) >= 6
    missing = {name for name in names if not hasattr(ours, name)}
    assert missing == {name.rpartition(".")[2] for name in LEFT_OUT if name.startswith(theirs.__name__)}


@pairs
def test_every_class_has_the_public_members(theirs, ours):
    for name in public_names(theirs):
        if isinstance(getattr(theirs, name), type):
            of_theirs = getattr(theirs, name)
            members = set(dir(of_theirs)) | set(getattr(of_theirs, "__dataclass_fields__", ()))
            made = getattr(ours, name)
            known = set(dir(made)) | set(getattr(made, "__dataclass_fields__", ()))
            assert {member for member in members if not member.startswith("_")} <= known, name


def parameters(function):
    return [p.name for p in inspect.signature(function).parameters.values()]


@pairs
def test_every_function_takes_the_arguments_that_the_original_takes(theirs, ours):
    looked_at = 0
    for name in public_names(theirs):
        original = getattr(theirs, name)
        if inspect.isfunction(original):
            wanted = parameters(original)
            assert parameters(getattr(ours, name))[:len(wanted)] == wanted, name
            looked_at += 1
        elif isinstance(original, type) and name not in ("CompiledFn", "CallbackTrigger"):
            made = getattr(ours, name)
            public = [m for m, _ in inspect.getmembers(original, inspect.isfunction) if not m.startswith("_")]
            for here, there in [(made, original), *((getattr(made, m), getattr(original, m)) for m in public)]:
                wanted = parameters(there)
                assert parameters(here)[:len(wanted)] == wanted, there
                looked_at += 1
    assert looked_at >= 5


def test_triggers_and_arguments_are_equal_to_pytorchs():
    theirs = torch._dynamo.callback
    assert callback.CallbackTrigger.DYNAMO == theirs.CallbackTrigger.DYNAMO
    made, original = [m.CallbackArgs(m.CallbackTrigger.DYNAMO, "0/0") for m in (callback, theirs)]
    assert made == original and original == made and isinstance(made, theirs.CallbackArgs)
    assert repr(made) == repr(original) == "CallbackArgs(callback_trigger=<CallbackTrigger.DYNAMO: 1>, compile_id='0/0')"
    assert made != callback.CallbackArgs(callback.CallbackTrigger.DYNAMO, "0/1") and made != "0/0"


both = pytest.mark.parametrize("module", [torch._dynamo.callback, callback], ids=["theirs", "ours"])


def run(module, handler, count=1):
    for _ in range(count):
        with handler.install_callbacks(module.CallbackTrigger.DYNAMO, "0/0"):
            pass


@both
def test_the_handlers_lists_are_live(module):
    handler, said = module.CompilationCallbackHandler(), []
    handler.start_callbacks.append(lambda _: said.append("a"))
    handler.start_callbacks.insert(0, lambda _: said.append("b"))
    handler.end_callbacks += [lambda _: said.append("end")]
    run(module, handler)
    assert said == ["b", "a", "end"] and len(handler.start_callbacks) == 2
    handler.start_callbacks.pop(0)
    del handler.end_callbacks[:]
    run(module, handler)
    assert said == ["b", "a", "end", "a"] and handler.end_callbacks == [] and [] == handler.end_callbacks
    with pytest.raises(ValueError):
        handler.end_callbacks.remove(print)
    handler.start_callbacks = [said.append]
    assert handler.start_callbacks == [said.append] and said.append in handler.start_callbacks
    handler.start_callbacks[0] = print
    handler.start_callbacks.clear()
    run(module, handler)
    assert len(said) == 4


@both
def test_lists_that_the_handler_is_given_are_followed(module):
    said, starts, ends = [], [], []
    handler = module.CompilationCallbackHandler(starts, end_callbacks=ends)
    first = lambda _: said.append("first")  # noqa: E731
    starts.append(first)
    handler.register_start_callback(lambda _: said.append("second"))
    ends.append(lambda _: said.append("end"))
    run(module, handler)
    assert said == ["first", "second", "end"] and len(starts) == 2
    handler.remove_start_callback(first)
    del ends[0]
    run(module, handler)
    assert said[3:] == ["second"] and len(starts) == 1 and handler.end_callbacks == []


@both
def test_the_count_of_open_compiles_has_pytorchs_name_and_never_becomes_negative(module):
    handler = module.CompilationCallbackHandler()
    with handler.install_callbacks(module.CallbackTrigger.DYNAMO, "0/0"):
        assert handler._CompilationCallbackHandler__pending_callbacks_counter == 1
    handler._CompilationCallbackHandler__pending_callbacks_counter -= 1
    with pytest.raises(AssertionError, match="Pending callbacks counter cannot become negative."):
        run(module, handler)
    assert handler._CompilationCallbackHandler__pending_callbacks_counter == 0


def test_appending_to_the_process_handlers_list_hears_real_compiles(fresh_dynamo):
    said = []
    callback.callback_handler.start_callbacks.append(lambda args: said.append(args.compile_id))
    try:
        torch.compile(lambda x: x + 101, backend="eager")(torch.ones(2))
    finally:
        callback.callback_handler.clear()
    assert said == ["0/0"]


def test_the_gpu_traces_lists_are_live():
    said = []
    for module in (torch.cuda._gpu_trace, gpu_trace):
        module.EventCreationCallbacks.callback_list.append(said.append)
        module.EventCreationCallbacks.fire_callbacks(7)
        module.EventCreationCallbacks.callback_list.remove(said.append)
        module.EventCreationCallbacks.fire_callbacks(8)
        assert module.EventCreationCallbacks.callback_list == []
    assert said == [7, 7]
    gpu_trace.EventCreationCallbacks.callback_list = [said.append]
    assert len(torch.cuda._gpu_trace.EventCreationCallbacks.callback_list) == 1  # ours stands there
    torch.cuda._gpu_trace.EventCreationCallbacks.fire_callbacks(9)
    gpu_trace.EventCreationCallbacks.callback_list.clear()
    assert said == [7, 7, 9] and torch.cuda._gpu_trace.EventCreationCallbacks.callback_list == []


def test_an_unknown_backend_is_caught_as_pytorchs():
    with pytest.raises(torch._dynamo.exc.InvalidBackend) as error:
        backends.lookup_backend("inducter")
    assert type(error.value) is backends.InvalidBackend and isinstance(error.value, LookupError)
    assert "Did you mean 'inductor'" in str(error.value) and error.value.name == "inducter"
    assert pickle.loads(pickle.dumps(error.value)).name == "inducter"
    assert "'b'" in str(backends.InvalidBackend("a", suggestions=["b"]))


def test_the_default_backend_is_pytorchs_own():
    theirs = torch._dynamo.backends.registry
    if not hasattr(theirs, "get_default_backend"):
        with pytest.raises(backends.BackendError, match="no default backend"):
            backends.get_default_backend()
        return
    try:
        backends.set_default_backend("eager")
        assert theirs.get_default_backend() == backends.get_default_backend() == "eager"
        with pytest.raises(TypeError):
            backends.set_default_backend(7)
    finally:
        backends.set_default_backend(None)
    assert backends.get_default_backend() == "inductor"


def test_private_tables_are_pytorchs_and_not_copies():
    assert backends._BACKENDS is torch._dynamo.backends.registry._BACKENDS
    assert backends._COMPILER_FNS is torch._dynamo.backends.registry._COMPILER_FNS
    with pytest.raises(AttributeError, match="no attribute '_ANYTHING'"):
        backends._ANYTHING  # noqa: B018


def test_backends_that_pytorch_discovered_are_known():
    class Point:
        value, extras = "somewhere:made", ()

        def load(self):
            return lambda graph, inputs: graph.forward

    backends._BACKENDS["rm_discovered"] = Point()
    try:
        assert "rm_discovered" in backends.list_backends()
        assert callable(backends.lookup_backend("rm_discovered"))
    finally:
        backends.unregister_backend("rm_discovered")
    assert "rm_discovered" not in backends._BACKENDS


def test_importing_the_registry_does_not_import_dynamo():
    code = "import sys, torch, ringmain.torch.backends as b; print('torch._dynamo' in sys.modules, b.CompiledFn.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False CompiledFn\n", done.stderr
