#!/usr/bin/env python3
"""Makes the pages of the reference: OUTPUT/html.

usage: docs.py SOURCE_ROOT BUILD_FOLDER PYTHON OUTPUT

OUTPUT is made anew. PYTHON is the interpreter that the Python package of BUILD_FOLDER was built with. Every warning is an error. Exit codes: 0 made, 1 something
is wrong in a comment or a page, 2 wrong use or a tool is missing.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import public_headers
import tree

THEME = Path("/usr/share/doxygen-awesome-css/doxygen-awesome.css")


class Stop(Exception):
    """One sentence, and the exit status."""

    def __init__(self, sentence, status=2):
        super().__init__(sentence)
        self.status = status


def said(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)


def interpreter_with_sphinx(python):
    """The package's own interpreter if it has Sphinx, else the system's if it can load the package's module."""
    tag = said([python, "-c", "import sys; print(sys.version_info[:2])"]).stdout
    for one in (python, "/usr/bin/python3", "python3"):
        asked = said([one, "-c", "import sys, furo, myst_parser, sphinx; print(sys.version_info[:2])"])
        if asked.returncode == 0 and asked.stdout == tag:
            return one
    raise Stop(f"no Python {tag.strip()} here has Sphinx, furo and MyST, which the pages are made with; on Debian: "
               "apt-get install python3-sphinx furo python3-myst-parser")


def lay_headers_out(root, folder):
    for path in public_headers.public_headers(root):
        made = folder / "ringmain" / public_headers.installed_path(path)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(public_headers.for_doxygen(path, (root / path).read_text()))


def make_cpp(root, work, html, version):
    if not shutil.which("doxygen"):
        raise Stop("doxygen is not here, which the reference of C++ is made with; on Debian: apt-get install doxygen")
    lay_headers_out(root, work / "headers")
    settings = (root / "docs/reference/doxygen.conf").read_text() + f"""
PROJECT_NUMBER = {version}
INPUT = "{work}/headers" "{root}/docs/reference/main.dox"
STRIP_FROM_PATH = "{work}/headers"
STRIP_FROM_INC_PATH = "{work}/headers"
OUTPUT_DIRECTORY = "{html}"
HTML_OUTPUT = cpp
"""
    if THEME.exists():
        settings += f'HTML_EXTRA_STYLESHEET = "{THEME}"\n'
    ended = said(["doxygen", "-"], input=settings)
    if ended.returncode or ended.stderr.strip():
        raise Stop(f"{ended.stderr.strip()}\nthe comments above are wrong; the lines are those of the copies that are named", 1)


def lay_pages_out(root, source):
    """The tree as it is, so that relative links hold: pages as copies, in which links to folders lead to nothing."""
    for path in tree.files(root, {".md"}):
        text = (root / path).read_text()

        def plain(link, path=path):
            target = (root / path.parent / link[2].partition("#")[0])
            return link[1] if link[2].partition("#")[0] and target.is_dir() else link[0]

        made = source / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(re.sub(r"\[([^\]]+)\]\(([^)\s:]+)\)", plain, text))
    for path in tree.files(root):
        if path.suffix != ".md" and path.parts[0] in ("adapters", "bench", "bindings", "bus", "cli", "cmake", "engine", "events",
                                                      "examples", "packaging", "tests", "tools") or str(path) in ("LICENSE", "dev"):
            made = source / path
            made.parent.mkdir(parents=True, exist_ok=True)
            made.symlink_to(root / path)
    for name in ("conf.py", "index.rst", "python.rst", "cpp-and-c.rst"):
        shutil.copy(root / "docs/reference" / name, source)
    (source / "files").mkdir()


def commands_page(program):
    """What --help says of each verb, as a page."""
    def helps(path):
        text = said([program, *path, "--help"]).stdout
        found = re.search(r"^verbs:\n((?:  .*\n)+)", text, re.M)
        below = [line.split()[0] for line in found[1].splitlines() if line[2] != " "] if found else []
        return [(path, text)] + [one for verb in below if verb != "help" for one in helps([*path, verb])]

    made = "The command line\n================\n\nThe same stands in ``man ringmain`` and ``man ringmain-VERB``.\n"
    for path, text in helps([]):
        title = " ".join(["ringmain", *path])
        indented = "\n".join("   " + line if line else "" for line in text.splitlines())
        made += f"\n{title}\n{'-' * len(title)}\n\n.. code-block:: none\n\n{indented}\n"
    return made


def make_pages(root, build, work, html, version, python):
    sphinx = interpreter_with_sphinx(python)
    source = work / "source"
    lay_pages_out(root, source)
    (source / "commands.rst").write_text(commands_page(build / "bin" / "ringmain"))
    site = said([python, "-c", "import numpy, pathlib; print(pathlib.Path(numpy.__file__).parents[1])"])
    if site.returncode:
        raise Stop(f"{python} has no NumPy, which the Python package needs")
    environment = {**os.environ, "RINGMAIN_DOCS_PACKAGE": str(build / "python"), "RINGMAIN_DOCS_SITE": site.stdout.strip(),
                   "RINGMAIN_DOCS_VERSION": version, "PYTHONDONTWRITEBYTECODE": "1"}
    ended = said([sphinx, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-d", work / "doctrees", "-b", "html",
                  source, html], env=environment)
    if ended.returncode or ended.stderr.strip():
        raise Stop(f"{ended.stdout}{ended.stderr.strip().replace(str(source) + '/', '')}\nthe pages above are wrong", 1)


def check_links(html):
    """Does every link within the pages lead to a file that is there? Doxygen's own pages among each other are left out."""
    lost, looked_at = [], 0
    for page in (page for page in html.rglob("*.html") if "cpp" not in page.relative_to(html).parts):
        for target in set(re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(errors="replace"))):
            if re.match(r"[a-z]+:|//", target):
                continue
            looked_at += 1
            if not (page.parent / unquote(target)).exists():
                lost.append(f"{page.relative_to(html)}: {target} is not there")
    if lost or not looked_at:
        raise Stop("\n".join([*lost, "the links above lead nowhere"]), 1)
    return looked_at


def main():
    if len(sys.argv) != 5:
        print(f"usage: docs.py SOURCE_ROOT BUILD_FOLDER PYTHON OUTPUT\n{__doc__}", file=sys.stderr)
        return 2
    root, build, python = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3]
    version = re.search(r"project\(ringmain VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    folder = Path(sys.argv[4]).resolve()
    work, html = folder / "work", folder / "html"
    for made in (work, html):
        shutil.rmtree(made, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        make_pages(root, build, work, html, version, python)
        make_cpp(root, work, html, version)
        links = check_links(html)
    except Stop as why:
        print(f"docs: {why}", file=sys.stderr)
        return why.status
    pages = sum(1 for _ in html.rglob("*.html"))
    print(f"made: {pages} pages without a warning, {links} links looked at; begin with {html / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
