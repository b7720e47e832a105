"""What tests of doors share: processes that have one, and `ringmain door`."""

import contextlib
import os
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("RINGMAIN_BINARY", str(ROOT / "build/release/bin/ringmain"))
SANITIZED = bool(os.environ.get("RINGMAIN_SANITIZED"))


class DoorCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.doors = self.folder / "doors"
        self.environment = {**os.environ, "RINGMAIN_DOOR": str(self.doors), "RINGMAIN_FLIGHT_DIR": str(self.folder / "flight")}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            self.environment.pop(name, None)

    def ringmain(self, *words, **environment):
        return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env={**self.environment, **environment})

    def said(self, *words):
        run = self.ringmain("door", *words)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def complained(self, *words, status=1):
        run = self.ringmain("door", *words)
        self.assertEqual((run.returncode, run.stdout), (status, ""))
        return run.stderr

    def start(self, *command, **environment):
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**self.environment, **environment})
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def end(self, process):
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def tell(self, process, word):
        process.stdin.write(word + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def sockets(self):
        return sorted(self.doors.iterdir()) if self.doors.exists() else []

    def listen(self, path, answer, ready=lambda: None):
        """What is no process's door: it gives everybody that answer, when `ready` returns."""
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen(8)

        def run():
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer, contextlib.suppress(OSError):
                    if peer.recv(99):
                        ready()
                    peer.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()

        def end():
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            listening.close()
        self.addCleanup(end)
