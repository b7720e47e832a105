"""ringmain.torch.callback against torch._dynamo.callback: each defect is shown on PyTorch's own first."""

import logging
import threading

import pytest
import torch._dynamo.callback as theirs

from ringmain.torch import callback as ours

DYNAMO = {theirs: theirs.CallbackTrigger.DYNAMO, ours: ours.CallbackTrigger.DYNAMO}


def handlers():
    """A handler of PyTorch's and one of ours: neither hears of real compiles."""
    return theirs.CompilationCallbackHandler(), ours.CompilationCallbackHandler()


def one_compile(module, handler, compile_id="0/0", body=lambda: None):
    with handler.install_callbacks(DYNAMO[module], compile_id):
        body()


def both(test):
    return pytest.mark.parametrize("module", [theirs, ours], ids=["theirs", "ours"])(test)


@both
def test_start_and_end_are_told_in_the_order_of_registration(module):
    handler, said = module.CompilationCallbackHandler(), []
    for name in "abc":
        handler.register_start_callback(lambda args, name=name: said.append(("start", name, args.compile_id)))
        handler.register_end_callback(lambda args, name=name: said.append(("end", name, args.compile_id)))
    one_compile(module, handler)
    assert said == [(edge, name, "0/0") for edge in ("start", "end") for name in "abc"]


@both
def test_a_callback_that_is_registered_twice_is_called_twice(module):
    handler, said = module.CompilationCallbackHandler(), []
    assert handler.register_start_callback(said.append) is not None
    handler.register_start_callback(said.append)
    one_compile(module, handler)
    handler.remove_start_callback(said.append)  # another bound method that equals the first
    one_compile(module, handler)
    assert len(said) == 3


@both
def test_nested_and_concurrent_compiles_have_one_pair(module):
    handler, said = module.CompilationCallbackHandler(), []
    handler.register_start_callback(lambda args: said.append(("start", args.compile_id)))
    handler.register_end_callback(lambda args: said.append(("end", args.compile_id)))
    inside, leave = threading.Event(), threading.Event()

    def other_thread():
        with handler.install_callbacks(DYNAMO[module], "1/0"):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other_thread)
    with handler.install_callbacks(DYNAMO[module], "0/0"):
        one_compile(module, handler, "0/1")
        thread.start()
        inside.wait()
    leave.set()
    thread.join()
    assert said == [("start", "0/0"), ("end", "1/0")]


@both
def test_arguments_compare_by_trigger_and_id(module):
    assert module.CallbackArgs(DYNAMO[module], "0/0") == module.CallbackArgs(DYNAMO[module], "0/0")
    assert module.CallbackArgs(DYNAMO[module], "0/0") != module.CallbackArgs(DYNAMO[module], "0/1")
    assert [(t.name, t.value) for t in module.CallbackTrigger] == [
        ("DYNAMO", 1), ("LAZY_BACKWARD", 2), ("TRITON_AUTOTUNING", 3), ("CUDAGRAPH_RECORDING", 4)]


def test_a_callback_that_removes_itself_does_not_hide_the_next_one():
    def called(module, handler):
        said = []

        def second(_):
            said.append("second")

        def first(_):
            said.append("first")
            handler.remove_start_callback(first)

        handler.register_start_callback(first)
        handler.register_start_callback(second)
        one_compile(module, handler)
        return said

    original, mended = handlers()
    assert called(theirs, original) == ["first"]
    assert called(ours, mended) == ["first", "second"]


def test_removing_what_is_unknown_is_a_reported_no_op():
    original, mended = handlers()
    with pytest.raises(ValueError):
        original.remove_end_callback(print)
    assert mended.remove_end_callback(print) is False
    handle = mended.subscribe_end(print)
    assert handle.remove() is True
    assert handle.remove() is False


def test_no_lock_is_held_while_a_callback_runs():
    original, mended = handlers()
    held = []
    lock = original._CompilationCallbackHandler__pending_callbacks_counter_lock
    original.register_start_callback(lambda _: held.append(lock.locked()))
    one_compile(theirs, original)
    assert held == [True]  # a compile in here would wait for itself for ever

    said = []
    mended.register_start_callback(lambda _: one_compile(ours, mended, "1/0"))
    mended.register_end_callback(lambda args: said.append(args.compile_id))
    one_compile(ours, mended, "0/0")
    assert said == ["0/0"]


def test_a_slow_callback_holds_up_no_other_compile():
    original, mended = handlers()
    entered, leave = threading.Event(), threading.Event()

    def slow(_):
        entered.set()
        leave.wait()

    original.register_start_callback(slow)
    thread = threading.Thread(target=one_compile, args=(theirs, original))
    thread.start()
    entered.wait()
    lock = original._CompilationCallbackHandler__pending_callbacks_counter_lock
    assert not lock.acquire(blocking=False)  # where every other compile would stand
    leave.set()
    thread.join()

    entered.clear()
    leave.clear()
    mended.register_start_callback(slow)
    thread = threading.Thread(target=one_compile, args=(ours, mended))
    thread.start()
    entered.wait()
    one_compile(ours, mended, "1/0")  # returns while the other thread's callback is still in there
    assert mended.pending == 1
    leave.set()
    thread.join()
    assert mended.pending == 0


def test_a_start_that_raises_vetoes_but_the_others_are_called_and_the_end_says_so():
    def run(module, handler):
        said, ran = [], []

        def guard(_):
            raise RuntimeError("no compiles while serving")

        handler.register_start_callback(guard)
        handler.register_start_callback(lambda _: said.append("start"))
        handler.register_end_callback(lambda args: said.append(getattr(args, "outcome", None)))
        with pytest.raises(RuntimeError, match="while serving"):
            one_compile(module, handler, body=lambda: ran.append(True))
        assert not ran
        return said

    original, mended = handlers()
    assert run(theirs, original) == [None]  # an end that knows of nothing, after a start that some never heard
    assert run(ours, mended) == ["start", ours.Outcome.cancelled]


def test_an_end_that_raises_changes_nothing(caplog):
    def starts_after_a_raising_end(module, handler):
        said = []

        def broken(_):
            raise RuntimeError("broken subscriber")

        handler.register_start_callback(lambda _: said.append("start"))
        handler.register_end_callback(broken)
        try:
            one_compile(module, handler)
        except RuntimeError:
            said.append("raised")
        one_compile(module, handler)
        return said

    original, mended = handlers()
    assert starts_after_a_raising_end(theirs, original) == ["start", "raised"]  # silence from here on
    with pytest.raises(AssertionError):
        original.clear()
    with caplog.at_level(logging.ERROR, "ringmain.torch"):
        assert starts_after_a_raising_end(ours, mended) == ["start", "start"]
    assert "broken" in caplog.text
    mended.clear()


def test_an_end_that_raises_does_not_mask_the_compiles_own_error():
    def error_of(module, handler):
        def broken(_):
            raise KeyError("subscriber")

        def failing():
            raise ArithmeticError("the compile's own")

        handler.register_end_callback(broken)
        try:
            one_compile(module, handler, body=failing)
        except Exception as error:
            return type(error)

    original, mended = handlers()
    assert error_of(theirs, original) is KeyError
    assert error_of(ours, mended) is ArithmeticError


def test_the_end_carries_outcome_and_exception_type():
    _, mended = handlers()
    said = []
    mended.register_end_callback(lambda args: said.append((args.outcome, args.exception_type)))
    one_compile(ours, mended)
    with pytest.raises(ZeroDivisionError):
        one_compile(ours, mended, body=lambda: 1 // 0)
    assert said == [(ours.Outcome.completed, ""), (ours.Outcome.failed, "ZeroDivisionError")]


@pytest.mark.parametrize("text, frame, compile, autograd", [
    ("0/0", 0, 0, None), ("12/3", 12, 3, None), ("!0/1/2", 1, 2, 0), ("!7", None, None, 7), ("None", None, None, None)])
def test_the_arguments_say_when_where_and_which(text, frame, compile, autograd):
    args = ours.CallbackArgs(ours.CallbackTrigger.DYNAMO, text)
    assert (args.frame_id, args.frame_compile_id, args.autograd_id) == (frame, compile, autograd)
    assert args.thread_id == threading.get_native_id()
    assert args.time_ns > 0


def test_every_trigger_is_delivered_autotuning_too():
    _, mended = handlers()
    said = []
    mended.register_start_callback(lambda args: said.append(args.callback_trigger))
    for trigger in ours.CallbackTrigger:
        with mended.install_callbacks(trigger, "0/0"):
            pass
    assert said == list(ours.CallbackTrigger)


def test_clear_while_a_compile_is_pending_is_no_error():
    original, mended = handlers()
    with pytest.raises(AssertionError):
        one_compile(theirs, original, body=original.clear)
    said = []
    mended.register_end_callback(said.append)
    one_compile(ours, mended, body=mended.clear)
    assert not said and mended.pending == 0


def test_a_removed_callback_is_not_running_any_more():
    _, mended = handlers()
    entered, leave, removed = threading.Event(), threading.Event(), threading.Event()
    still_running = []

    def slow(_):
        entered.set()
        leave.wait()
        still_running.append(removed.is_set())

    handle = mended.subscribe_start(slow)
    compiling = threading.Thread(target=one_compile, args=(ours, mended))
    compiling.start()
    entered.wait()
    removing = threading.Thread(target=lambda: (handle.remove(), removed.set()))
    removing.start()
    leave.set()
    removing.join()
    compiling.join()
    assert still_running == [False]
