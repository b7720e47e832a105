"""Lightning's training steps on the bus: `Trainer(callbacks=[ringmain.lightning.StepCallback()])`.

The import needs Lightning: `lightning`, or `pytorch_lightning` where a program has imported that one.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from ._extra import need
from ._loops import LightningLoop


def _base() -> Any:
    """The two distributions have each their own Callback, and their own Trainer that looks for it."""
    name = "lightning.pytorch"
    if name not in sys.modules and ("pytorch_lightning" in sys.modules or importlib.util.find_spec("lightning") is None):
        if importlib.util.find_spec("pytorch_lightning") is not None:
            name = "pytorch_lightning"
    return need(name, "ringmain.lightning", "lightning").Callback


class StepCallback(LightningLoop, _base()):  # type: ignore[misc]
    """Says `train.step` for each step of the Trainer, its accumulated batches as micro-batches, and the phases forward, backward and
    optimizer, below which events know their step. `errors` and `last_error` say what was kept away from the training."""


__all__ = ["StepCallback"]
