"""PyTorch on the bus: attach() for its events, and its own registries with handles and without their defects."""

from ._attach import AlreadyAttached, Attachment, Report, SurfaceReport, attach
from ._collectives import CollectiveVetoed
from ._hooks import CompileVetoed
from ._optimizer_steps import OptimizerSteps, steps_from_optimizer

__all__ = ["AlreadyAttached", "Attachment", "CollectiveVetoed", "CompileVetoed", "OptimizerSteps", "Report", "SurfaceReport", "attach",
           "steps_from_optimizer"]
