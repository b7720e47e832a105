"""PyTorch on the bus: attach() for its events, and its own registries with handles and without their defects."""

from ._attach import AlreadyAttached, Attachment, Report, SurfaceReport, attach
from ._collectives import CollectiveVetoed
from ._hooks import CompileVetoed

__all__ = ["AlreadyAttached", "Attachment", "CollectiveVetoed", "CompileVetoed", "Report", "SurfaceReport", "attach"]
