"""A PyTorch program whose loader forks two workers after CUDA was used."""

import torch
from torch.utils.data import DataLoader

torch.ones(10, device="cuda").sum().item()
read = sum(len(batch) for batch in DataLoader(list(range(100)), batch_size=10, num_workers=2, multiprocessing_context="fork"))
torch.cuda.synchronize()
assert read == 100, read
print("PyTorch's loader read 100 with two workers")
