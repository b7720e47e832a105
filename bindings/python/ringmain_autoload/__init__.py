"""PyTorch's extension entry point: `import torch` calls autoload(), which attaches PyTorch to ringmain if that is asked
for, and else does nothing. It never raises: PyTorch would take that for its own failure, and not start.

Outside of the package, so that who does not ask does not even import it. Asked for is it by RINGMAIN_ATTACH: `torch`,
set by `ringmain run --source torch`, or `1`.
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
