"""What the tests of ringmain.torch share. Without PyTorch all of them are skipped, and say so."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

try:
    import torch
except ImportError as error:  # a machine without PyTorch, or one whose PyTorch does not start
    NO_TORCH = f"PyTorch is not here ({error}); pip install torch==2.13.0"
else:
    NO_TORCH = ""
    torch.set_num_threads(1)


class SkippedModule(pytest.Module):
    def collect(self):
        pytest.skip(NO_TORCH)


def pytest_pycollect_makemodule(module_path, parent):
    return SkippedModule.from_parent(parent, path=module_path) if NO_TORCH else None


@pytest.fixture
def fresh_dynamo():
    """Nothing compiled before, and nothing of this test's behind it."""
    torch._dynamo.reset()
    yield torch._dynamo
    torch._dynamo.reset()
