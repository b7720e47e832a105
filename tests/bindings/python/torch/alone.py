"""A process group of one rank, by gloo."""

import torch.distributed as dist


def meet():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return dist.distributed_c10d._get_default_group()
