"""How does a script of tests end, so that ctest and the count understand it?"""

import sys
import unittest

SKIPPED = 77


def main() -> int:
    """Runs the test cases of the calling script that its arguments name. Where all of them were skipped: why, and SKIPPED."""
    result = unittest.main(argv=sys.argv, exit=False, verbosity=1).result
    if not result.wasSuccessful():
        return 1
    if result.skipped and result.testsRun == len(result.skipped):
        print("skipped:", "; ".join(reason for _, reason in result.skipped))
        return SKIPPED
    return 0
