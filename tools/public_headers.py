"""Which headers does a user include, and what do their comments say to Doxygen?

What is documented are the installed headers without the engine and without what lies in a folder core/: the rooms' own places, and of
the adapters those that cmake/PackagingAdapters.cmake lists.
"""

import re
from pathlib import Path

# A member with a comment behind it, and lines that go on with that comment.
MEMBER = re.compile(r"^(\s+[\w<>:,*&\[\]{} =.'()|\-+\"]*[;,}]|\s+\w+)(\s{1,})// (.*)$")
GOES_ON = re.compile(r"^\s{12,}// (.*)$")


def public_headers(root):
    """Their paths below root, sorted."""
    packaging = (root / "cmake" / "PackagingAdapters.cmake").read_text()
    places = re.search(r"foreach\(place IN ITEMS ([^)]*)\)", packaging)[1].split()
    found = {path for room in ("bus", "events") for path in (root / room).rglob("*.hpp")
             if "core" not in path.relative_to(root).parts}
    for place in places:
        found |= {path for suffix in ("h", "hpp") for path in (root / place).glob(f"*.{suffix}")}
    for listed in re.finditer(r"set\((\w+)_headers ([^)]*)\)", packaging):
        found |= {root / "adapters" / "sources" / listed[1] / name for name in listed[2].split()}
    found |= set((root / "bindings" / "c").glob("ringmain*.h"))
    return sorted(path.relative_to(root) for path in found)


def installed_path(path):
    """What a user writes behind <ringmain/."""
    parts = path.parts
    return Path("c", *parts[2:]) if parts[:2] == ("bindings", "c") else path


def for_doxygen(path, text):
    """The header with its comments in Doxygen's form: the first one is of the file, one behind a member is of that member, and in C
    each one above a declaration is of that."""
    if path.suffix == ".h":
        text = re.sub(r"\A/\* ", "/** @file\n * ", text)
        text = re.sub(r"^/\*(?!\*)(?! ---)(?=.*\n?)", "/**", text, flags=re.M)
        text = re.sub(r"^(  \w[^;/\n]*[;,])( +)/\* ", r"\1\2/**< ", text, flags=re.M)
        return re.sub(r"^/\*\* clang-format (on|off)", r"/* clang-format \1", text, flags=re.M)
    lines = text.split("\n")
    made, above, member = [], True, False
    for line in lines:
        if above and line.startswith("//"):
            made += ["/// @file", "/// @brief" + line[2:]] if not made else ["/" + line]
            continue
        above = False
        found = MEMBER.match(line)
        goes_on = GOES_ON.match(line)
        if found and not line.lstrip().startswith(("return", "if", "//", "case")):
            line, member = f"{found[1]}{found[2]}///< {found[3]}", True
        elif member and goes_on:
            line = line.replace("// ", "///< ", 1)
        else:
            member = False
        made.append(line)
    return "\n".join(with_code_marked(made))


DOC = re.compile(r"^( *)///(?!<) ?(.*)$")


def with_code_marked(lines):
    """In what Doxygen reads, indented lines are shown as they are, and <words> and #words of the others are no commands."""
    made, code = [], False
    for line in lines:
        found = DOC.match(line)
        indented = bool(found and found[2].startswith("  "))
        if indented != code and not (code and found and not found[2]):  # an empty line may be within code
            made.append(f"{found[1] if found else ''}/// {'@code{.cpp}' if indented else '@endcode'}")
            code = indented
        if found and not code:
            line = re.sub(r"`[^`]*`|[<#](?=[a-z]+\b)", lambda word: word[0] if word[0][0] == "`" else "\\" + word[0], line)
        made.append(line)
    return made
