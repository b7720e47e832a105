"""Are steps said without a line in the loop, once each, and never at the training's expense?"""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import ringmain
import ringmain.torch
import torch
from heard import Heard

PROGRAM = Path(os.environ.get("RINGMAIN_BUILD", ".")) / "bin" / "ringmain"


def model_and(kind=torch.optim.SGD, **options):
    model = torch.nn.Linear(2, 1)
    return model, kind(model.parameters(), lr=0.1, **options)


def train(model, *optimizers, steps=1):
    for _ in range(steps):
        model(torch.ones(3, 2)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


@pytest.fixture
def edges(bus):
    heard = Heard(bus, "train.step")
    return lambda: [(one["step"], one["phase"], one["edge"]) for one in heard.on("train.step")]


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    hooks = sys.modules["torch.optim.optimizer"]
    assert not hooks._global_optimizer_pre_hooks and not hooks._global_optimizer_post_hooks


def steps(first, last):
    return [(n, "", edge) for n in range(first, last + 1) for edge in ("begin", "end")]


def test_each_step_of_the_optimizer_ends_a_step_and_begins_the_next(bus, edges):
    model, optimizer = model_and()
    with ringmain.torch.steps_from_optimizer(bus) as found:
        train(model, optimizer, steps=3)
        assert found.steps == 3 and found.optimizer is optimizer and found.errors == 0
    assert edges() == steps(0, 3), "what came after the third ended with remove()"


def test_after_remove_nothing_is_said(bus, edges):
    model, optimizer = model_and()
    found = ringmain.torch.steps_from_optimizer(bus, first=100)
    train(model, optimizer)
    found.remove()
    found.remove()
    train(model, optimizer, steps=2)
    assert edges() == steps(100, 101) and repr(found).endswith("by SGD: 1, removed>")


def test_of_several_optimizers_the_first_that_steps_counts_or_the_one_that_is_named(bus, edges):
    model, first = model_and()
    second = torch.optim.Adam(model.parameters())
    with ringmain.torch.steps_from_optimizer(bus) as found:
        train(model, first, second, steps=2)
        assert found.optimizer is first
    assert edges() == steps(0, 2)
    with ringmain.torch.steps_from_optimizer(bus, optimizer=second, first=10) as found:
        train(model, first, second, first, steps=2)
    assert found.steps == 2 and edges() == steps(0, 2) + steps(10, 12)


def test_an_optimizer_that_calls_another_inside_its_step_counts_once(bus, edges):
    class Outer(torch.optim.SGD):
        def step(self, closure=None):
            inner.step()
            return super().step(closure)

    model, inner = model_and(torch.optim.Adam)
    outer = Outer(model.parameters(), lr=0.1)
    with ringmain.torch.steps_from_optimizer(bus) as found:
        train(model, outer, steps=2)
        assert found.optimizer is outer and found.steps == 2
    assert edges() == steps(0, 2)


def test_a_step_that_raises_ends_none_and_the_next_one_does(bus, edges):
    class Shaky(torch.optim.SGD):
        fails = True

        def step(self, closure=None):
            if self.fails:
                raise ValueError("not this time")
            return super().step(closure)

    model, _ = model_and()
    optimizer = Shaky(model.parameters(), lr=0.1)
    with ringmain.torch.steps_from_optimizer(bus) as found:
        with pytest.raises(ValueError, match="not this time"):
            train(model, optimizer)
        optimizer.fails = False
        train(model, optimizer, steps=2)
        assert found.steps == 2 and found.errors == 0
    assert edges() == steps(0, 2)


def test_a_new_optimizer_takes_the_place_of_one_that_is_gone(bus, edges):
    model, optimizer = model_and()
    with ringmain.torch.steps_from_optimizer(bus) as found:
        train(model, optimizer)
        del optimizer
        train(model, torch.optim.SGD(model.parameters(), lr=0.1))
        assert found.steps == 2
    assert edges() == steps(0, 2)


def test_events_know_the_step_that_the_optimizer_ended(bus):
    tick = bus.channel("test.tick", dtype=[("n", "i8")])
    model, optimizer = model_and()
    with bus.follow_steps() as follow, bus.mailbox("test.tick") as box, ringmain.torch.steps_from_optimizer(bus):
        for n in range(3):
            tick.publish(n=n)
            train(model, optimizer)
        assert bus.flush(60)
        assert [(event.n, follow.at(event).step) for batch in box for event in batch] == [(n, n) for n in range(3)]


def test_phases_of_ones_own_hang_below_the_step(bus, edges):
    model, optimizer = model_and()
    with ringmain.torch.steps_from_optimizer(bus):
        with bus.step(phase="forward"):
            loss = model(torch.ones(3, 2)).sum()
        loss.backward()
        optimizer.step()
    assert edges() == [(0, "", "begin"), (0, "forward", "begin"), (0, "forward", "end"), (0, "", "end"), *steps(1, 1)]


def test_a_phase_that_is_open_around_the_optimizer_ends_with_its_step(bus, edges):
    model, optimizer = model_and()
    found = ringmain.torch.steps_from_optimizer(bus)
    with bus.step(phase="all"):
        train(model, optimizer, steps=2)
    with bus.step(phase="other"):
        found.remove()
    assert found.errors == 0 and edges() == [(0, "", "begin"), (0, "all", "begin"), (0, "all", "end"), (0, "", "end"), *steps(1, 1),
                                             (2, "", "begin"), (2, "other", "begin"), (2, "other", "end"), (2, "", "end")]


def test_training_in_another_thread_than_the_one_that_asked(bus, edges):
    model, optimizer = model_and()
    found = ringmain.torch.steps_from_optimizer(bus, begin_now=False)
    thread = threading.Thread(target=lambda: (train(model, optimizer, steps=2), found.remove()))
    thread.start()
    thread.join()
    assert found.errors == 0 and edges() == steps(0, 2)


def test_one_that_another_thread_removed_is_silent(bus, edges):
    model, optimizer = model_and()
    hooks = sys.modules["torch.optim.optimizer"]
    found = ringmain.torch.steps_from_optimizer(bus, begin_now=False)
    train(model, optimizer)
    thread = threading.Thread(target=found.remove)
    thread.start()
    thread.join()
    train(model, optimizer, steps=2)
    assert found.steps == 1 and hooks._global_optimizer_post_hooks, "PyTorch may be reading them in this thread"
    assert edges() == steps(0, 1), "the one that was open ended with the next step of this thread"
    found.remove()


def test_a_thread_that_ended_leaves_no_step_open_and_no_hook(bus, edges):
    model, optimizer = model_and()
    found = ringmain.torch.steps_from_optimizer(bus, begin_now=False)
    thread = threading.Thread(target=train, args=(model, optimizer))
    thread.start()
    thread.join()
    assert edges() == steps(0, 1)
    found.remove()  # nobody reads the hooks of a thread that is gone: nothing_is_left() looks
    assert edges() == steps(0, 1)


def test_an_optimizer_that_goes_from_thread_to_thread_ends_each_step_once(bus, edges):
    model, optimizer = model_and()
    found = ringmain.torch.steps_from_optimizer(bus)
    thread = threading.Thread(target=train, args=(model, optimizer))
    thread.start()
    thread.join()
    train(model, optimizer)
    found.remove()
    assert found.steps == 2 and found.errors == 0
    assert sorted(edges()) == sorted(steps(0, 0) * 2 + steps(1, 1) * 2 + steps(2, 2)), "one of each thread that had it open"


def removed_in_a_hook_of_ones_own(found, optimizer, bus):
    hooks = sys.modules["torch.optim.optimizer"]
    handles = [hooks.register_optimizer_step_pre_hook(hook) for hook in (lambda *_: found.remove(), lambda *_: None)]  # PyTorch goes on
    optimizer.step()
    return handles


def removed_in_a_closure(found, optimizer, bus):
    optimizer.step(lambda: found.remove())
    return []


def removed_by_an_inline_subscriber(found, optimizer, bus):
    def heard(edge):
        found.remove()

    bus.subscribe_inline("train.step", heard)
    optimizer.step()
    return []


@pytest.mark.parametrize("way", [removed_in_a_hook_of_ones_own, removed_in_a_closure, removed_by_an_inline_subscriber])
def test_removed_inside_a_step_it_ends_and_the_training_goes_on(bus, edges, way):
    model, optimizer = model_and()
    found = ringmain.torch.steps_from_optimizer(bus)
    train(model, optimizer)
    handles = way(found, optimizer, bus)
    for handle in handles:
        handle.remove()
    train(model, optimizer, steps=2)
    said = edges()
    assert found.errors == 0 and len(said) % 2 == 0 and sorted(said) == sorted(steps(0, len(said) // 2 - 1)), "nothing is open"
    found.remove()  # between two steps, PyTorch's lists are nobody's


def test_inside_a_step_none_can_be_asked_for(bus, edges):
    model, optimizer = model_and()
    with pytest.raises(RuntimeError, match=r"an optimizer is in its step\(\) here"):
        optimizer.step(lambda: ringmain.torch.steps_from_optimizer(bus))
    with ringmain.torch.steps_from_optimizer(bus):
        train(model, optimizer)
    assert edges() == steps(0, 1)


def test_one_that_fails_takes_no_place(bus, edges):
    model, optimizer = model_and()
    with pytest.raises(TypeError, match=r"bus is 'x'; give a ringmain\.Bus"):
        ringmain.torch.steps_from_optimizer("x")

    closed = ringmain.Bus("closed")
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        ringmain.torch.steps_from_optimizer(closed)
    with ringmain.torch.steps_from_optimizer(bus):
        train(model, optimizer)
    assert edges() == steps(0, 1)


def test_a_bus_that_is_closed_costs_the_training_nothing(edges):
    model, optimizer = model_and()
    with ringmain.Bus("brief") as brief:
        found = ringmain.torch.steps_from_optimizer(brief)
        train(model, optimizer)
    train(model, optimizer, steps=2)
    assert found.steps == 1 and found.errors == 0
    found.remove()


def test_a_closure_and_a_scaler_are_one_step_and_none(bus, edges):
    model, optimizer = model_and(torch.optim.LBFGS)

    def closure():
        optimizer.zero_grad()
        loss = (model(torch.ones(3, 2)) ** 2).sum()
        loss.backward()
        return loss

    with ringmain.torch.steps_from_optimizer(bus):
        optimizer.step(closure)
    assert edges() == steps(0, 1)
    model, optimizer = model_and()
    scaler = torch.amp.GradScaler("cpu")
    with ringmain.torch.steps_from_optimizer(bus) as found:
        scaler.scale(model(torch.full((3, 2), float("inf"))).sum()).backward()
        scaler.step(optimizer)
        assert found.steps == 0, "the scaler left the step out"


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_compiled_loop_is_compiled_as_it_is_without(bus, fresh_dynamo, fullgraph):
    model, optimizer = model_and()

    @torch.compile(backend="eager", fullgraph=fullgraph)
    def whole(x):
        return model(x).sum()

    with ringmain.torch.steps_from_optimizer(bus) as found:
        for _ in range(2):
            whole(torch.ones(3, 2)).backward()
            optimizer.step()
        assert found.steps == 2 and found.errors == 0

    @torch.compile(backend="eager")
    def with_optimizer(x):
        model(x).sum().backward()
        optimizer.step()

    with ringmain.torch.steps_from_optimizer(bus) as found:
        with_optimizer(torch.ones(3, 2))
        assert found.errors == 0


def test_a_second_one_and_what_is_no_optimizer_are_refused(bus):
    found = ringmain.torch.steps_from_optimizer(bus)
    with pytest.raises(RuntimeError, match=r"come from an optimizer already; remove\(\) that first"):
        ringmain.torch.steps_from_optimizer(bus)
    found.remove()
    with pytest.raises(TypeError, match=r"optimizer is 7; give one of torch\.optim\.Optimizer"):
        ringmain.torch.steps_from_optimizer(bus, optimizer=7)
    with pytest.raises(ValueError, match="first is -1"):
        ringmain.torch.steps_from_optimizer(bus, first=-1)
    with pytest.raises(TypeError, match="begin_now"):
        ringmain.torch.steps_from_optimizer(bus, begin_now=1)


def test_what_the_page_shows_runs_as_it_stands():
    page = (Path(os.environ.get("RINGMAIN_SOURCE", Path(__file__).resolve().parents[4])) / "docs" / "torch.md").read_text(encoding="utf-8")
    (shown,) = [text for text in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "steps_from_optimizer" in text]
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True)
    assert done.stdout == "3 steps of SGD\n", done.stderr


LOOP = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("sources", "own"), [({"RINGMAIN_ATTACH": "1"}, "own = ringmain.torch.steps_from_optimizer(first=100)"),
                                              ({"RINGMAIN_ATTACH": "cuda", "RINGMAIN_RUN_SOURCES": "cuda:lane=4096"}, "")],
                         ids=["its_own", "beside_cuda"])
def test_an_unchanged_program_whose_variables_ask_and_whose_own_steps_go_before(sources, own):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGMAIN_")}
    program = (f"import ringmain; box = ringmain.Bus.process().mailbox('train.step'); import torch, ringmain.torch; {own}\n{LOOP}\n"
               "assert ringmain.Bus.process().flush(60); print([one.step for batch in box for one in batch if one.edge == 'end'])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=environment | sources | {"RINGMAIN_STEPS": "optimizer"})
    assert (done.returncode, done.stdout) == (0, "[100, 101, 102]\n" if own else "[0, 1, 2]\n"), done.stderr


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"there is no {PROGRAM}: the program was not built")
@pytest.mark.parametrize("asked", ["optimizer", "guess"])
def test_an_unchanged_program_of_a_run(tmp_path, asked):
    done = subprocess.run([PROGRAM, "run", "--source", "torch", "--sink", f"json_lines:{tmp_path}/e.jsonl", "--", sys.executable, "-c", LOOP],
                          capture_output=True, text=True, env={**os.environ, "RINGMAIN_STEPS": asked})
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    told = [(line["step"], line["edge"]) for line in lines if line["channel"] == "train.step"]
    if asked == "optimizer":
        assert told[:7] == [(n, edge) for n in range(3) for edge in ("begin", "end")] + [(3, "begin")]
    else:
        assert told == [] and "RINGMAIN_STEPS is 'guess'; the one thing to ask for is optimizer" in done.stderr
