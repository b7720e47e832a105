#!/usr/bin/env python3
"""Does Conan build a package of this tree, and are projects built against it, by its own recipe?

The bus alone: what else a package may hold is built in the same way, and would take minutes. Asks no remote: what the build needs is the
system's, by the profile of Debian 12.

usage: conan_test.py BUILD_FOLDER, with a conan 2 in the PATH
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SKIPPED = 77


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    conan = shutil.which("conan")
    version = subprocess.run([conan, "--version"], capture_output=True, text=True, check=False).stdout if conan else ""
    if not version.startswith("Conan version 2."):
        print("skipped: there is no Conan 2 here (python3 -m pip install conan)")
        return SKIPPED
    if not Path("/usr/include/concurrentqueue/concurrentqueue.h").exists():
        print("skipped: the profile debian12 says that the system has concurrentqueue, and this one has not")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="conan-", dir=sys.argv[1]) as home:
        # The compiler's cache knows the files by names relative to this folder, which is another one each time.
        environment = {**os.environ, "CONAN_HOME": home, "CCACHE_BASEDIR": home, "CCACHE_NOHASHDIR": "1"}
        said = ""
        for words in (("profile", "detect"),
                      ("create", SOURCE / "packaging/conan", "--no-remote", "-pr:a", SOURCE / "packaging/conan/debian12.profile", "-o", "&:adapters=False")):
            ended = subprocess.run([conan, *map(str, words)], capture_output=True, text=True, check=False, env=environment)
            said = ended.stdout + ended.stderr
            if ended.returncode:
                print(said)
                return 1
    wanted = {"sum 5050": 2, "3 waited in the mailbox": 1}  # with the shared and with the static library, and from C
    found = {line: said.count(line) for line in wanted}
    if found != wanted:
        print(f"{said}\nthe programs of the test package said {found}, and not {wanted}")
        return 1
    print(f"{version.strip()}: {', '.join(wanted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
