"""Do the workers of PyTorch's DataLoader, which are forks of a process with a live bus, load and end as without it?"""

import subprocess
import sys

import pytest

SCRIPT = """
import ringmain
import torch
from torch.utils.data import DataLoader, Dataset

@ringmain.event("load.item")
class Item:
    n: int

bus = ringmain.Bus.process()
heard = []
bus.subscribe("load.*", lambda events: heard.extend(events.array["n"].tolist()))
bus.subscribe_inline(Item, lambda event: True)

class Items(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, n):
        told = bus.publish(Item(n)).code          # as the parent would
        with ringmain.Bus("worker") as own, own.mailbox("load.*") as box:
            own.publish(Item(n))
            assert box.wait(60)
            (record,) = box.take()
        return torch.tensor([record.n, told == "forked"])

for _ in range(2):
    for n, batch in enumerate(DataLoader(Items(), batch_size=8, num_workers=2, multiprocessing_context="fork")):
        assert batch[:, 0].tolist() == list(range(8 * n, 8 * n + 8)) and batch[:, 1].all()
        assert bus.publish(Item(n))
assert bus.flush(60)
assert heard == [*range(8), *range(8)], heard
print("done")
"""


def test_its_workers_publish_in_vain_or_on_their_own_bus_and_end():
    pytest.importorskip("torch", reason="PyTorch is not installed; leave out --no-torch")
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=240, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
    assert "nanobind" not in ended.stderr and "Traceback" not in ended.stderr, ended.stderr
