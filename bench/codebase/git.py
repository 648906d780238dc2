"""What is asked of git: where a repository keeps its own files, snapshots of a working tree, contents, and merging."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

STEPS = "refs/bench-code/steps"
"""The commit of the last step; its parents are the earlier ones, so git keeps all of their contents."""
AUTHOR = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "bench"), ("EMAIL", "bench@localhost"))
}


class CodeError(BenchError):
    """A repository, a patch or a question that nothing can be done with."""


@dataclass(frozen=True)
class Repository:
    """A git repository with a working tree."""

    root: Path
    common: Path

    @classmethod
    def at(cls, folder: Path) -> Repository:
        """The repository that holds a folder. Raises CodeError where there is none."""
        if not folder.is_dir():
            raise CodeError(f"{folder} is no folder; name one of a git repository")
        asked = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
        try:
            done = subprocess.run(("git", "-C", str(folder), *asked), capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise CodeError("git is not installed; bench code keeps contents in git") from None
        if "dubious ownership" in done.stderr:
            raise CodeError(f"the repository of {folder} is another user's; allow it with git's setting safe.directory")
        if "work tree" in done.stderr:
            raise CodeError(f"the repository of {folder} has no working tree; name a folder of a clone")
        if done.returncode:
            raise CodeError(f"{folder} lies in no git repository; begin one with `git init`")
        top, common = done.stdout.splitlines()[:2]
        return cls(Path(top).resolve(), Path(common))

    def ask(self, *words: str, given: bytes | None = None, environment: Mapping[str, str] | None = None) -> bytes:
        """What git answers. Raises CodeError with git's own last line where it fails."""
        command = ("git", "-C", str(self.root), *words)
        surroundings = {**os.environ, **(environment or {})}
        done = subprocess.run(command, input=given, capture_output=True, check=False, env=surroundings)
        if done.returncode:
            complaint = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise CodeError(f"git {words[0]} failed in {self.root}: {complaint[-1]}")
        return done.stdout

    def keep(self, content: bytes) -> str:
        """Store a content, and return its id."""
        return self.ask("hash-object", "-w", "--stdin", given=content).decode().strip()

    def content(self, blob: str) -> bytes:
        """A stored content by its id."""
        return self.ask("cat-file", "blob", blob)

    def snapshot(self) -> str:
        """The tree of all files as they are now, without those that git ignores. The user's own index stays as it is."""
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            repository_index = Path(self.ask("rev-parse", "--path-format=absolute", "--git-path", "index").decode().strip())
            if repository_index.exists():
                # A copy spares git the reading of unchanged files. It keeps the time by which git knows which to distrust.
                shutil.copy2(repository_index, index["GIT_INDEX_FILE"])
            self.ask("add", "--all", "--ignore-errors", ".", environment=index)
            return self.ask("write-tree", environment=index).decode().strip()

    def commit(self, tree: str, message: str) -> str:
        """Add a tree to the steps, so that its contents are kept. Two processes may do so at once."""
        for _ in range(20):
            last = self._last()
            parents = ("-p", last) if last else ()
            made = self.ask("commit-tree", tree, *parents, "-m", message, environment=AUTHOR).decode().strip()
            try:
                self.ask("update-ref", STEPS, made, last or "0" * 40)
            except CodeError:
                continue
            return made
        raise CodeError(f"{STEPS} is being changed by other processes; try again")

    def commit_of(self, tree: str) -> str:
        """A commit that has this tree, and no parent."""
        return self.ask("commit-tree", tree, "-m", "bench code", environment=AUTHOR).decode().strip()

    def _last(self) -> str:
        try:
            return self.ask("rev-parse", "--verify", "--quiet", STEPS).decode().strip()
        except CodeError:
            return ""

    def changed(self, before: str, after: str) -> Sequence[str]:
        """The paths that differ between two trees; with "" for the first, all paths. A name that is not UTF-8 is left out."""
        if not before:
            listing = self.ask("ls-tree", "-r", "-z", "--name-only", after)
        else:
            listing = self.ask("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after)
        return [path for name in listing.split(b"\0") if name and is_text(path := os.fsdecode(name))]

    def blob_at(self, tree: str, path: str) -> str:
        """The id of a file's content in a tree; "" where it is not there."""
        listing = self.ask("ls-tree", "-z", tree, "--", path)
        return listing.split(b"\t")[0].split()[2].decode() if listing else ""

    def merged(self, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """Both changes of a base in one text, as `git merge-file` has it; None where they conflict."""
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("ours", "base", "theirs")]
            for file, content in zip(files, (ours, base, theirs), strict=True):
                file.write_bytes(content)
            command = ("git", "merge-file", "-p", "-q", *map(str, files))
            done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None


def is_text(name: str) -> bool:
    """Whether a name that the system gave is UTF-8. SQLite keeps no other."""
    return name.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in name)
