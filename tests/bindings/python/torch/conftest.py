"""What the tests of ringmain.torch share. Without PyTorch all of them are skipped, and say so."""

import logging
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from heard import Heard  # noqa: E402, it lies beside this file

try:
    import torch
except ImportError as error:  # a machine without PyTorch, or one whose PyTorch does not start
    NO_TORCH = f"PyTorch is not here ({error}); pip install torch==2.13.0"
else:
    NO_TORCH = ""
    torch.set_num_threads(1)


class TraceLogger(logging.Logger):
    """pytest adds handlers of its own to loggers that do not propagate. To PyTorch's trace logger another handler
    means that somebody wants every record, so here it stays as it is in a program."""

    def addHandler(self, handler):  # noqa: N802, the name is logging's
        if not type(handler).__module__.startswith("_pytest"):
            super().addHandler(handler)


logging.getLogger("torch.__trace").__class__ = TraceLogger


class SkippedModule(pytest.Module):
    def collect(self):
        pytest.skip(NO_TORCH)


def pytest_pycollect_makemodule(module_path, parent):
    return SkippedModule.from_parent(parent, path=module_path) if NO_TORCH else None


@pytest.fixture
def fresh_dynamo():
    """Nothing compiled before, and nothing of this test's after it."""
    torch._dynamo.reset()
    yield torch._dynamo
    torch._dynamo.reset()


@pytest.fixture
def bus():
    import ringmain

    with ringmain.Bus("the first") as made:
        yield made


@pytest.fixture
def alone():
    """A group of this process alone."""
    from alone import dist, meet

    yield meet()
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture
def attached(bus, fresh_dynamo):
    """PyTorch on a bus of the test's own."""
    import ringmain.torch

    with ringmain.torch.attach(bus) as attachment:
        yield attachment
    assert not [surface for surface in attachment.report().surfaces if surface.errors], attachment.report()


@pytest.fixture
def heard(bus, attached):
    """All that is said about compiles."""
    listening = Heard(bus, "compile.*", "torch.*")
    listening.forget()
    return listening


@pytest.fixture
def eventually():
    """Waits for a condition; False if it does not come in a minute."""
    import threading
    import time

    def wait_for(condition):
        end = time.monotonic() + 60
        while not condition() and time.monotonic() < end:
            threading.Event().wait(0.001)
        return condition()

    return wait_for
