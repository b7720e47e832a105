#!/usr/bin/env python3
"""Does every link of the pages lead somewhere: to a file of the project, and to a heading that is there?

Looks at all Markdown of the tree. Links to other sites are not followed, because the tests need no network; blocks and words of code are no links.
"""

import re
import sys
from pathlib import Path

import tree

CODE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$|(`+)(?!`).+?(?<!`)\3(?!`)", re.M | re.S)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)?)(?: \"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?$", re.M)
NAMED = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")


def blanked(text):
    """The same lines, with the code in them blank."""
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def anchors(text):
    """The names by which the forges lead to the headings of a page."""
    found, seen = set(NAMED.findall(text)), {}
    within = re.sub(r"^( *)(```|~~~).*?^\1\2[^\n]*$", "", text, flags=re.M | re.S)
    for heading in HEADING.findall(within):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        again = seen.get(slug, 0)
        seen[slug] = again + 1
        found.add(f"{slug}-{again}" if again else slug)
    return found


def main():
    root = tree.root_argument(__doc__)
    pages = tree.files(root, {".md"})
    kept = {str(path) for path in tree.files(root)}
    folders = {str(folder) for path in kept for folder in Path(path).parents}
    headings, findings, looked_at = {}, [], 0
    for page in pages:
        text = blanked((root / page).read_text(encoding="utf-8"))
        for link in LINK.finditer(text):
            if ELSEWHERE.match(link[1]):
                continue
            looked_at += 1
            place, _, anchor = link[1].partition("#")
            line = text.count("\n", 0, link.start()) + 1
            target = page
            if place:
                parts = []
                for part in (*page.parent.parts, *Path(place).parts):
                    parts = parts[:-1] if part == ".." and parts else [*parts, part]
                target = Path(*parts)
            if str(target) not in kept and str(target) not in folders:
                findings.append(f"{page}:{line}: {link[1]} leads to no file of the project; mend or remove the link")
            elif anchor and target.suffix == ".md":
                if target not in headings:
                    headings[target] = anchors((root / target).read_text(encoding="utf-8"))
                if anchor not in headings[target]:
                    findings.append(f"{page}:{line}: {link[1]} names no heading of {target}; name one that is there")
    return tree.tell(findings, looked_at)


if __name__ == "__main__":
    sys.exit(main())
