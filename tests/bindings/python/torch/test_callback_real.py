"""ringmain.torch.callback on PyTorch's real compiles."""

import pytest
import torch
import torch._dynamo.callback as theirs

from ringmain.torch import callback as ours


@pytest.fixture
def said(fresh_dynamo):
    """What our module's callbacks heard: (edge, trigger, id, outcome)."""
    heard = []
    starts = ours.callback_handler.subscribe_start(lambda a: heard.append(("start", a.callback_trigger.name,
                                                                           a.compile_id, a.outcome.value)))
    ends = ours.callback_handler.subscribe_end(lambda a: heard.append(("end", a.callback_trigger.name, a.compile_id,
                                                                       a.outcome.value)))
    yield heard
    starts.remove()
    ends.remove()
    ours.callback_handler.clear()
    assert "clear" not in vars(theirs.callback_handler)  # nothing of ours is left in there


def test_real_compiles_are_told_with_trigger_and_id(said):
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert said == [("start", "DYNAMO", "0/0", "running"), ("end", "DYNAMO", "0/0", "completed")]


def test_registrations_survive_a_reset(said):
    lost = []
    theirs.on_compile_start(lost.append)
    torch._dynamo.reset()
    torch.compile(lambda x: x + 2, backend="eager")(torch.ones(2))
    assert not lost  # PyTorch's own is gone without a word
    assert [edge for edge, *_ in said] == ["start", "end"]


def test_a_failing_backend_ends_as_failed(said):
    def refuse(graph, inputs):
        raise RuntimeError("refuses")

    with pytest.raises(Exception, match="refuses"):
        torch.compile(lambda x: x + 3, backend=refuse)(torch.ones(2))
    assert said[-1] == ("end", "DYNAMO", "0/0", "failed")


def test_a_compile_inside_an_except_block_does_not_count_as_failed(said):
    try:
        raise KeyError("the program's own")
    except KeyError:
        torch.compile(lambda x: x + 4, backend="eager")(torch.ones(2))
    assert said[-1] == ("end", "DYNAMO", "0/0", "completed")


def test_a_veto_stops_a_real_compile(said):
    def guard(_):
        raise AssertionError("no compiles now")

    with ours.callback_handler.subscribe_start(guard), pytest.raises(AssertionError, match="no compiles now"):
        torch.compile(lambda x: x + 5, backend="eager")(torch.ones(2))
    assert [said[0][0], said[-1]] == ["start", ("end", "DYNAMO", "0/0", "cancelled")]
    torch.compile(lambda x: x + 6, backend="eager")(torch.ones(2))
    assert said[-1][3] == "completed"


def test_a_raising_end_callback_harms_no_real_compile(said):
    def broken(_):
        raise RuntimeError("broken subscriber")

    with ours.callback_handler.subscribe_end(broken):
        for n in range(2):
            torch.compile(lambda x, n=n: x + 7 + n, backend="eager")(torch.ones(2))
    assert [edge for edge, *_ in said] == ["start", "end"] * 2
