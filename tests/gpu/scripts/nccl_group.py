"""A process group of two ranks on `nccl`, on one GPU: operations of several kinds, some asynchronous. 77: PyTorch cannot."""

import sys

try:
    import torch
    import torch.distributed as dist
except ImportError as why:
    print(f"there is no PyTorch: {why}", file=sys.stderr)
    sys.exit(77)

if not torch.cuda.is_available() or not dist.is_nccl_available():
    print("there is no PyTorch that can use the GPU and NCCL", file=sys.stderr)
    sys.exit(77)

ROUNDS = 5
torch.cuda.set_device(0)
dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
one, all_of = torch.ones(1 << 16, device="cuda"), torch.empty(2 << 16, device="cuda")
for _ in range(ROUNDS):
    dist.all_reduce(one)
    dist.all_gather_into_tensor(all_of, one)
    dist.reduce_scatter_tensor(one, all_of)
    dist.all_reduce(one, async_op=True).wait()
    dist.all_to_all_single(all_of, all_of.clone())
torch.cuda.synchronize()
dist.destroy_process_group()
