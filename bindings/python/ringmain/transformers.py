"""The steps of Hugging Face's Trainer on the bus: `Trainer(…, callbacks=[ringmain.transformers.StepCallback()])`.

The import needs transformers.
"""

from __future__ import annotations

from ._extra import need
from ._loops import HuggingFaceLoop


class StepCallback(HuggingFaceLoop, need("transformers", "ringmain.transformers", "transformers").TrainerCallback):  # type: ignore[misc]
    """Says `train.step` for each step of the Trainer, its accumulated batches as micro-batches, and the phase optimizer, below which
    events know their step. `errors` and `last_error` say what was kept away from the training."""


__all__ = ["StepCallback"]
