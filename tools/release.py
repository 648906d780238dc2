"""What a release says: `python tools/release.py v1.2.3` prints the version's section of CHANGELOG.md, and refuses a tag that is
not the version of the package and of CITATION.cff. It needs nothing but Python."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the changelog's section of the version that a tag names. Raises ValueError if the files name another version."""
    version = tag.removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    for name, named in (("pyproject.toml", project), ("CITATION.cff", cited[1] if cited else "no version")):
        if named != version:
            raise ValueError(f"the tag {tag} is not the version of {name}, which is {named}")
    sections = re.split(r"^(?=## )", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    dated = re.compile(rf"## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n")
    section = next((section for section in sections if dated.match(section)), None)
    if section is None:
        raise ValueError(f"CHANGELOG.md has no section `## {version} (DATE)`")
    return section


if __name__ == "__main__":
    try:
        print(notes(sys.argv[1]), end="")
    except (ValueError, IndexError) as error:
        sys.exit(f"release: {error}")
