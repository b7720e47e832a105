"""PyTorch on the bus: attach() for its events, and its own registries with handles and without their traps."""
