"""PyTorch's extension entry point: `import torch` calls autoload(), which attaches PyTorch to ringmain if that is asked
for, and else does nothing. It never raises: PyTorch would take that for its own failure, and not start.

It lies outside the package, so that a program that does not ask does not even import that. A program asks by
RINGMAIN_ATTACH: `torch`, which `ringmain run --source torch` sets, or `1`.
"""

import os
import sys


def autoload() -> None:
    """Attaches if RINGMAIN_ATTACH asks; says in one sentence on standard error why it could not."""
    if os.environ.get("RINGMAIN_ATTACH", "") in ("", "0"):
        return
    try:
        from ringmain.torch._run import attach_as_asked

        attach_as_asked()
    except Exception as error:
        try:
            print(f"ringmain: could not attach to PyTorch in {os.path.basename(sys.argv[0] or 'python')} "
                  f"(pid {os.getpid()}): {type(error).__name__}: {error}", file=sys.stderr)
        except Exception:  # standard error is closed
            pass
