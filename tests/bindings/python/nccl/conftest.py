"""Tests of ringmain.nccl share what lies beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
