"""A program that knows nothing of ringmain: two steps of a small compiled model, on the CPU."""

import torch

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)

    def step(x):
        return torch.nn.functional.relu(model(x)).sum()

    compiled = torch.compile(step, backend="aot_eager")
    for _ in range(2):
        loss = compiled(torch.ones(3, 4))
        loss.backward()
    print(f"trained: {loss.item():.3f}")
