#!/usr/bin/env python3
"""Do the pages at the root and in docs/ quote programs that are compiled, and does the cookbook show its programs?

Every block of C++ in them must stand, line for line, in one of the programs below examples/, which are built and run as tests. In
docs/cookbook.md each question and the block below it are a file of examples/cookbook: its first comment and the rest; each file there
is on the page. --write: puts there what the files have. Exit codes: 0 they do, 1 one does not, 2 wrong use.
"""
import pathlib
import re
import sys

COOKBOOK = "docs/cookbook.md"
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".c": "c", ".py": "python", ".sh": "sh"}
ENTRY = re.compile(r"^### .*\n\n\[([\w.]+)\]\(\.\./examples/cookbook/\1\)\n\n```\w+\n(?:.*\n)*?```$", re.M)


def entry_of(path):
    """How the page shows that file: its first line is a comment with the question."""
    first, _, rest = path.read_text().partition("\n")
    question = re.sub(r"^(//|/\*|#) |( \*/)$", "", first)
    return f"### {question}\n\n[{path.name}](../examples/cookbook/{path.name})\n\n```{LANGUAGES[path.suffix]}\n{rest.strip()}\n```"


def with_programs(root, page):
    """The cookbook's page as it should be, and what is wrong with it that cannot be mended from the files."""
    folder = root / "examples" / "cookbook"
    programs = {path.name: path for path in sorted(folder.glob("*.*")) if path.suffix in LANGUAGES}
    shown = [found[1] for found in ENTRY.finditer(page)]
    wrong = [f"{COOKBOOK} does not show examples/cookbook/{name}" for name in programs if name not in shown]
    wrong += [f"{COOKBOOK} shows {name} twice" for name in sorted({name for name in shown if shown.count(name) > 1})]
    wrong += [f"{COOKBOOK} shows {name}, which is not in examples/cookbook" for name in shown if name not in programs]
    return ENTRY.sub(lambda found: entry_of(programs[found[1]]) if found[1] in programs else found[0], page), wrong


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--write"]
    if len(words) != 1:
        print("usage: check_quotes.py [--write] SOURCE_ROOT", file=sys.stderr)
        return 2
    root = pathlib.Path(words[0])
    looked_at, lost = 0, 0
    cookbook = root / COOKBOOK
    if cookbook.exists():
        page = cookbook.read_text()
        made, wrong = with_programs(root, page)
        looked_at += len(ENTRY.findall(page))
        if "--write" in sys.argv:
            cookbook.write_text(made)
        elif made != page:
            wrong.append(f"{COOKBOOK} is not what the programs are; run check_quotes.py --write .")
        print(*wrong, sep="\n", end="\n" if wrong else "")
        lost += len(wrong)
    programs = [p.read_text() for p in sorted([*root.glob("examples/**/*.cpp"), *root.glob("examples/**/*.hpp")])]
    for page in [*sorted(root.glob("*.md")), *sorted(root.glob("docs/*.md"))]:
        for indent, block in re.findall(r"^( *)```cpp\n(.*?)^\1```$", page.read_text(), re.M | re.S):
            looked_at += 1
            block = re.sub(f"^{indent}", "", block, flags=re.M)  # in a numbered step
            if any(block in text for text in programs):
                continue
            lost += 1
            print(f"{page.relative_to(root)} quotes what no example holds; copy it anew:\n{block}")
    print(f"{looked_at} looked at, {lost} found")
    return 1 if lost or not looked_at else 0


if __name__ == "__main__":
    sys.exit(main())
