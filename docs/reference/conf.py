"""How are the pages and the reference of Python made? ./dev docs lays the pages out and says in the environment what it found."""

import ast
import os
import re
import sys

# The package of the build, and behind all else what it needs, such as NumPy, from the environment that it was built with.
sys.path.insert(0, os.environ["RINGMAIN_DOCS_PACKAGE"])
sys.path.extend(filter(None, os.environ.get("RINGMAIN_DOCS_SITE", "").split(os.pathsep)))

project = "ringmain"
author = "the ringmain authors"
copyright = "the ringmain authors, Apache-2.0"  # noqa: A001: Sphinx's name
version = release = os.environ["RINGMAIN_DOCS_VERSION"]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["files"]
# Headings are linked to as on the forges: docs/python.md#cudas-calls.
myst_heading_anchors = 6

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": True}

html_theme = "furo"
html_title = f"ringmain {release}"
html_extra_path = ["files"]
html_copy_source = False
html_show_sphinx = False
highlight_language = "none"
# Blocks with an ellipsis in them are no whole programs.
suppress_warnings = ["misc.highlighting_failure"]


def as_text(line):
    """Words in one pair of backticks are code, and all others are words: `**fields`, some_name_, a|b."""
    parts = re.split(r"(`+[^`]+`+)", line)
    return "".join(f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([*_|\\])", r"\\\1", part) for part in parts)


def types_of_stub():
    """Of each property of the extension module its type, as type checkers see it: "Batch.array" and so on."""
    stub = os.path.join(os.environ["RINGMAIN_DOCS_PACKAGE"], "ringmain", "_native.pyi")
    with open(stub, encoding="utf-8") as text:
        classes = [one for one in ast.parse(text.read()).body if isinstance(one, ast.ClassDef)]
    return {f"{of.name}.{one.name}": ast.unparse(one.returns) for of in classes for one in of.body
            if isinstance(one, ast.FunctionDef) and one.returns is not None}


STUB = types_of_stub()


def from_prose(app, what, name, found, options, lines):
    """Comments of the package are prose with programs in it, indented, and not reStructuredText."""
    if what == "property" and lines and lines[0].startswith("(self) ->"):
        lines[0] = f"`{STUB.get('.'.join(name.split('.')[-2:]), lines[0][10:])}`"
    made, in_program = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not in_program:
            made += ["", ".. code-block:: python", ""]
        elif in_program and line and not indented:
            made.append("")
        in_program = indented or (in_program and not line)
        made.append(line if indented else as_text(line))
    lines[:] = made


def setup(app):
    app.connect("autodoc-process-docstring", from_prose)
