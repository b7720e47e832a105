# How do I keep the last events of a process that may be killed?
import os
import subprocess
import sys
import tempfile

CHILD = """
import os, signal, ringmain
bus = ringmain.Bus.process()
recording = bus.record("train.>", folder=os.environ["FOLDER"])
with bus.step(7):
    os.kill(os.getpid(), signal.SIGKILL)
"""
with tempfile.TemporaryDirectory() as folder:
    killed = subprocess.run([sys.executable, "-c", CHILD], env={**os.environ, "FOLDER": folder}, check=False)
    read = subprocess.run(["ringmain", "post-mortem", folder], capture_output=True, text=True, check=True)
print(read.stdout)
assert killed.returncode == -9 and "train.step" in read.stdout
