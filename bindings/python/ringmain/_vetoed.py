"""What does the caller of an operation get that a hook refused?"""

from __future__ import annotations


class OperationVetoed(RuntimeError):
    """A pre hook refused the operation; the backend was not called. `reason` is the hook's."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
