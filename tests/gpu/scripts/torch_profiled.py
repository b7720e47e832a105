"""How many events of the GPU does torch.profiler see of a small program?"""

import json

import torch
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    numbers = torch.ones(1 << 20, device="cuda")
    for _ in range(20):
        numbers = numbers * 1.5
    torch.cuda.synchronize()
seen = sum(1 for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA)
print(json.dumps({"gpu_events": seen}))
