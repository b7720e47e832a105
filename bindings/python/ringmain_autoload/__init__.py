"""PyTorch's extension entry point: `import torch` calls autoload(), which attaches PyTorch to ringmain if that is asked
for, and else does nothing. It never raises: PyTorch would take that for its own failure, and not start.

It lies outside the package, so that a program that does not ask does not even import that. A program asks by
RINGMAIN_ATTACH: `torch` or `cuda`, which `ringmain run --source` sets, or `1`. A program that has imported ringmain.cuda before
asks for one thing only: that CUDA's source steps aside for torch.profiler.
"""

import os
import sys


def autoload() -> None:
    """Attaches if RINGMAIN_ATTACH asks; says in one sentence on standard error why it could not."""
    asked = os.environ.get("RINGMAIN_ATTACH", "") not in ("", "0")
    if not asked and "ringmain.cuda" not in sys.modules:
        return
    try:
        from ringmain.torch._run import attach_as_asked, beside_cuda

        if asked:
            attach_as_asked()
        else:
            beside_cuda()
    except Exception as error:
        try:
            print(f"ringmain: could not attach to PyTorch in {os.path.basename(sys.argv[0] or 'python')} "
                  f"(pid {os.getpid()}): {type(error).__name__}: {error}", file=sys.stderr)
        except Exception:  # standard error is closed
            pass
