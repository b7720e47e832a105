"""Do the callbacks for Lightning and for Hugging Face's Trainer say the steps, and keep their errors to themselves? Their order of calls
is played here; with the packages there, their own trainers run."""

import copy
import importlib
import logging
import pickle
import sys
import threading
from types import SimpleNamespace

import pytest
import ringmain
from ringmain._loops import HuggingFaceLoop, LightningLoop


@pytest.fixture
def told(bus, long):
    """(step, micro_batch, phase, edge) of what was said."""
    box = bus.mailbox("train.step")

    def read():
        assert bus.flush(long)
        return [(one.step, one.micro_batch, one.phase, one.edge) for batch in box for one in batch]

    return read


def both(*inside, of):
    return [(*of, "begin"), *inside, (*of, "end")]


def play_lightning(loop, batches, accumulated=1, raises=None):
    trainer = SimpleNamespace(global_step=0, accumulate_grad_batches=accumulated)
    for batch in range(batches):
        loop.on_train_batch_start(trainer, None, None, batch)
        loop.on_before_backward(trainer, None, None)
        loop.on_after_backward(trainer, None)
        if batch == raises:
            return loop.on_exception(trainer, None, ValueError())
        if (batch + 1) % accumulated == 0 or batch + 1 == batches:
            loop.on_before_optimizer_step(trainer, None, None)
            trainer.global_step += 1
        loop.on_train_batch_end(trainer, None, None, None, batch)
    return loop.on_train_end(trainer, None)


def play_trainer(loop, steps, accumulated=1):
    args, state = SimpleNamespace(gradient_accumulation_steps=accumulated), SimpleNamespace(global_step=0)
    loop.on_train_begin(args, state, None, model=None)
    for _ in range(steps):
        loop.on_step_begin(args, state, None, model=None)
        for _ in range(accumulated - 1):
            loop.on_substep_end(args, state, None, model=None)
        loop.on_pre_optimizer_step(args, state, None)
        loop.on_optimizer_step(args, state, None)
        state.global_step += 1
        loop.on_step_end(args, state, None)
    loop.on_train_end(args, state, None)


PHASES = ("forward", "backward", "optimizer")


def lightning_step(n):
    return both(*(line for phase in PHASES for line in both(of=(n, 0, phase))), of=(n, 0, ""))


def test_a_batch_of_lightnings_is_a_step_with_its_phases(bus, told):
    play_lightning(LightningLoop(bus), 2)
    assert told() == lightning_step(0) + lightning_step(1)


def test_accumulated_batches_are_micro_batches_of_one_step(bus, told):
    play_lightning(LightningLoop(bus, phases=False), 5, accumulated=2)
    micro = [both(of=(n, m, "")) for n, m in ((0, 1), (0, 2), (1, 1), (1, 2), (2, 1))]
    assert told() == [*both(*micro[0], *micro[1], of=(0, 0, "")), *both(*micro[2], *micro[3], of=(1, 0, "")), *both(*micro[4], of=(2, 0, ""))]


def test_a_training_that_raises_leaves_nothing_open(bus, told):
    loop = LightningLoop(bus, phases=False)
    play_lightning(loop, 3, raises=1)
    with bus.step(9):
        pass
    assert told() == both(of=(0, 0, "")) + both(of=(1, 0, "")) + both(of=(9, 0, "")) and loop.errors == 0


def test_a_step_of_the_trainers_has_micro_batches_and_the_phase_of_its_optimizer(bus, told):
    play_trainer(HuggingFaceLoop(bus), 1)
    assert told() == both(*both(of=(0, 0, "optimizer")), of=(0, 0, ""))
    play_trainer(HuggingFaceLoop(bus), 1, accumulated=2)
    assert told() == both(*both(of=(0, 1, "")), *both(*both(of=(0, 2, "optimizer")), of=(0, 2, "")), of=(0, 0, ""))


def test_what_goes_wrong_is_counted_logged_once_and_never_raised(caplog):
    class Broken(LightningLoop):
        @property
        def bus(self):
            raise OSError("no bus today")

    loop = Broken()
    with caplog.at_level(logging.WARNING, logger="ringmain"):
        play_lightning(loop, 3)
    assert loop.errors >= 3 and loop.last_error == "OSError: no bus today"
    assert [record.message for record in caplog.records] == ["the steps of Broken: OSError: no bus today; further errors are only counted"]


def test_one_without_a_bus_can_be_sent_to_another_process_and_one_with_a_bus_says_why_not(bus):
    sent = pickle.loads(pickle.dumps(LightningLoop(phases=False)))
    assert sent.bus is ringmain.Bus.process() and not sent._phases
    with pytest.raises(TypeError, match="LightningLoop of a bus of your own cannot be sent"):
        pickle.dumps(LightningLoop(bus))
    for copied in (copy.copy(LightningLoop(bus, phases=False)), copy.deepcopy(LightningLoop(bus, phases=False))):
        assert copied.bus is bus and not copied._phases


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda loop: pickle.loads(pickle.dumps(loop))], ids=["copy", "deepcopy", "pickle"])
def test_a_class_of_ones_own_is_copied_with_what_it_has(copied):
    loop = Own(every=3)
    loop.on_train_batch_start(SimpleNamespace(global_step=0), None, None, 0)
    made = copied(loop)
    assert type(made) is Own and made.every == 3 and made.itself[0] is (loop if copied is copy.copy else made)
    assert loop._step is not None and made._step is made._phase is None, "what is open stays with the one that opened it"
    loop.on_train_end(None, None)


class Own(LightningLoop):
    def __init__(self, every):
        super().__init__()
        self.every, self.itself = every, [self]


def test_a_hook_in_another_thread_is_counted_and_what_follows_is_said(bus, told):
    loop, trainer = LightningLoop(bus), SimpleNamespace(global_step=0, accumulate_grad_batches=2)
    thread = threading.Thread(target=loop.on_train_batch_start, args=(trainer, None, None, 0))
    thread.start()
    thread.join()
    trainer.global_step = 1
    loop.on_train_batch_end(trainer, None, None, None, 0)
    assert loop.errors == 3 and loop.last_error.startswith("RuntimeError: a step ends in the thread"), "phase, micro-batch and step"
    own = SimpleNamespace(global_step=5, accumulate_grad_batches=1)
    loop.on_train_batch_start(own, None, None, 0)
    loop.on_train_batch_end(own, None, None, None, 0)
    assert [line for line in told() if line[0] == 5] == both(*both(of=(5, 0, "forward")), of=(5, 0, "")) and loop.errors == 3


def test_what_is_no_bus_is_refused():
    with pytest.raises(TypeError, match=r"bus is 7; give a ringmain\.Bus"):
        LightningLoop(7)
    with pytest.raises(TypeError, match="phases is 1; give True or False"):
        HuggingFaceLoop(phases=1)


@pytest.mark.parametrize(("module", "package"), [("ringmain.lightning", "lightning"), ("ringmain.transformers", "transformers")])
def test_without_the_package_one_sentence_says_what_to_install(module, package, monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=f"{module} needs {package}, which is not installed: pip install {package}$"):
        importlib.import_module(module)


def test_lightning_itself(bus, told, tmp_path):
    pl = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
    import ringmain.lightning
    import torch

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch, _):
            return self.layer(batch).sum()

        def validation_step(self, batch, _):
            self.layer(batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(callback, **options):
        loader = torch.utils.data.DataLoader(torch.ones(6, 2), batch_size=2)
        trainer = pl.Trainer(max_epochs=1, accelerator="cpu", callbacks=[callback], logger=False, enable_checkpointing=False,
                             enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path, **options)
        trainer.fit(Module(), loader, loader)
        return callback

    assert fit(ringmain.lightning.StepCallback(bus)).errors == 0
    assert told() == [line for n in range(3) for line in lightning_step(n)]
    assert fit(ringmain.lightning.StepCallback(bus, phases=False), accumulate_grad_batches=2).errors == 0
    assert told() == both(*both(of=(0, 1, "")), *both(of=(0, 2, "")), of=(0, 0, "")) + both(*both(of=(1, 1, "")), of=(1, 0, ""))


def test_the_trainer_itself(bus, told, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed, which the Trainer wants")
    import ringmain.transformers
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x):
            return {"loss": self.layer(x).sum()}

    def run(callback, **options):
        args = transformers.TrainingArguments(output_dir=str(tmp_path), per_device_train_batch_size=1, max_steps=2, report_to=[],
                                              save_strategy="no", use_cpu=True, disable_tqdm=True, **options)
        transformers.Trainer(model=Model(), args=args, train_dataset=[{"x": torch.ones(2)}] * 8, callbacks=[callback]).train()
        return callback

    assert run(ringmain.transformers.StepCallback(bus)).errors == 0
    assert told() == [line for n in range(2) for line in both(*both(of=(n, 0, "optimizer")), of=(n, 0, ""))]
    assert run(ringmain.transformers.StepCallback(bus, phases=False), gradient_accumulation_steps=2).errors == 0
    assert told() == [line for n in range(2) for line in both(*both(of=(n, 1, "")), *both(of=(n, 2, "")), of=(n, 0, ""))]
