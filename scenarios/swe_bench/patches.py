"""Apply a patch, in the form of SWE-bench and of git, to files that are given as texts."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.common.errors import one_line

NAMED = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
SPECIAL = re.compile(
    r"^(?:(?:new|old|deleted)(?: file)? mode(?! 100)|index \S+(?= 1(?!00))|rename|copy|GIT binary patch)\b.*", re.MULTILINE
)
"""What is done to no text: links, modules, names. Only regular files are added, changed and removed."""
NOTHING = "/dev/null"
SECONDS = 10


class Unfit(ValueError):
    """A patch cannot be applied; the message says why, in one line."""


def paths_in(patch: str) -> list[str]:
    """Return each file that a patch names, once. Raises Unfit if a path leads out of the repository."""
    found = [name.strip() for name in dict.fromkeys(NAMED.findall(patch)) if name.strip() != NOTHING]
    for name in found:
        if name.startswith("/") or ".." in name.split("/") or name.split("/")[0] == ".git":
            raise Unfit(f"the patch names {one_line(name, 100)}, which is not in the repository")
    return list(dict.fromkeys(found))


def patched(files: Mapping[str, str], patch: str) -> dict[str, str]:
    """Return the files with the patch applied. Raises Unfit if it does not fit."""
    named = paths_in(patch)
    if not named:
        raise Unfit("the patch names no file; write `--- a/FILE` and `+++ b/FILE` before its hunks")
    if special := SPECIAL.search(patch):
        raise Unfit(f"the patch does what it may not: {one_line(special[0], 100)}; change, add and remove texts alone")
    touched = tuple((name, files[name]) for name in named if name in files)
    others = {name: text for name, text in files.items() if name not in named}
    return {**others, **dict(_applied(touched, patch))}


@lru_cache(maxsize=64)
def _applied(files: tuple[tuple[str, str], ...], patch: str) -> tuple[tuple[str, str], ...]:
    with TemporaryDirectory(prefix="bench-patch-") as made:
        folder = Path(made) / "tree"
        folder.mkdir()
        for name, text in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", newline="")
        if (why := _git_apply(folder, patch, made)) and _git_apply(folder, patch, made, "--recount"):
            raise Unfit(why)
        changed = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        return tuple((path.relative_to(folder).as_posix(), path.read_bytes().decode("utf-8", "replace")) for path in changed)


def _git_apply(folder: Path, patch: str, home: str, *more: str) -> str:
    """Apply the patch by git, and return why it does not fit, in which case nothing is changed; "" if it is applied. Models
    miscount lines, which --recount allows."""
    path = os.environ.get("PATH", os.defpath)
    alone = {"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": home, "LC_ALL": "C", "PATH": path}
    given = (patch if patch.endswith("\n") else f"{patch}\n").encode(errors="replace")
    command = ["git", "apply", "--whitespace=nowarn", *more, "-"]
    try:
        ran = subprocess.run(command, cwd=folder, env=alone, input=given, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"the patch takes longer than {SECONDS} s to apply"
    said = ran.stderr.decode(errors="replace")
    return one_line(f"the patch does not apply: {said}", 300) if ran.returncode else ""
