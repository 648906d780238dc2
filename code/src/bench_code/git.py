"""Runs git: finds a repository, takes snapshots of its working tree, stores and reads contents, and merges changes."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.common.errors import BenchError
from bench_code.present import TOOL_FILES

STEPS = "refs/bench-code/steps"
"""The ref of the last step's commit. Its ancestors are the commits of the earlier steps, so git keeps the contents of all."""
AUTHOR = {
    f"GIT_{who}_{what}": text
    for who in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "bench"), ("EMAIL", "bench@localhost"))
}

ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""The id of an object: a digest of SHA-1 or SHA-256. Any other word in its place could be an option of git."""
REPOSITORY_MODE = b"160000 "
"""The mode of an index's entry that is a repository within."""
SECRET = re.compile(
    r"\.env(\..*)?|.*\.(pem|key|p12|pfx|kdbx)|id_(rsa|dsa|ecdsa|ed25519)|\.netrc|\.pypirc|\.npmrc|credentials.*"
)
"""Names of files that hold secrets."""
EXCLUDED_PATHS = [f":(top,exclude,glob)**/{name}{inside}".encode() for name in sorted(TOOL_FILES) for inside in ("", "/**")]
"""What git does not add to a step: files that Python and its tools leave, whether or not the repository ignores them."""
LARGE_FILE_BYTES = 1_000_000
"""The most bytes of a file that git does not track and that is no code, for a step to hold it."""
FOREIGN_SCOPES = ("local", "worktree")
"""The scopes of git's settings that a repository brings with it. All other settings are the user's."""
NOT_RUN = {"core.fsmonitor": "false", "core.hooksPath": os.devnull}
NOT_FETCHED = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables that keep git from asking a remote for an object that is missing."""


class CodeError(BenchError):
    """A repository, a patch or a name that cannot be used. The text says what to do."""


@dataclass(frozen=True)
class Repository:
    """A git repository with a working tree."""

    root: Path
    common: Path
    guards: Mapping[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def at(cls, folder: Path) -> Repository:
        """Return the repository that contains a folder. Raises CodeError if there is none."""
        if not folder.is_dir():
            raise CodeError(f"{folder} is no folder; name one of a git repository")
        question = ("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
        try:
            finished = subprocess.run(("git", "-C", str(folder), *question), capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise CodeError("git is not installed; bench code keeps contents in git") from None
        if "dubious ownership" in finished.stderr:
            raise CodeError(f"the repository of {folder} is another user's; allow it with git's setting safe.directory")
        if "work tree" in finished.stderr:
            raise CodeError(f"the repository of {folder} has no working tree; name a folder of a clone")
        if finished.returncode:
            raise CodeError(f"{folder} lies in no git repository; begin one with `git init`")
        top, common = finished.stdout.splitlines()[:2]
        root = Path(top).resolve()
        if not folder.resolve().is_relative_to(root):
            raise CodeError(f"the repository of {folder} has its working tree elsewhere, in {root}; name a folder of that tree")
        return cls(root, Path(common), _guards(root))

    def ask(self, *words: str, given: bytes | None = None, environment: Mapping[str, str] | None = None) -> bytes:
        """Run git and return its output. Raises CodeError with the last line of git's message if it fails."""
        command = ("git", "-C", str(self.root), *words)
        variables = {**os.environ, **self.guards, **(environment or {})}
        finished = subprocess.run(command, input=given, capture_output=True, check=False, env=variables)
        if finished.returncode:
            complaint = finished.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise CodeError(f"git {words[0]} failed in {self.root}: {complaint[-1]}")
        return finished.stdout

    def keep(self, content: bytes) -> str:
        """Store a content and return its id."""
        return self.ask("hash-object", "-w", "--stdin", given=content).decode().strip()

    def content(self, blob: str) -> bytes:
        """Return a stored content by its id."""
        return self.ask("cat-file", "blob", _checked(blob))

    def snapshot(self) -> str:
        """Store the tree of all present files that git does not ignore, and return its id. The user's index does not change.

        A repository within this one is left out. To compare it, git would run the filters that its own settings name.
        """
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            repository_index = Path(self.ask("rev-parse", "--path-format=absolute", "--git-path", "index").decode().strip())
            if repository_index.exists():
                # With a copy git need not read unchanged files. By the copy's time git knows which entries to distrust.
                shutil.copy2(repository_index, index["GIT_INDEX_FILE"])
            self._forget_repositories_within(index)
            within = self.ask("ls-files", "-z", "--others", "--exclude-standard", environment=index).split(b"\0")
            left_out = [b":(top,exclude,literal)" + path for path in within if path.endswith(b"/") or self._is_private(path)]
            paths = ("--pathspec-from-file=-", "--pathspec-file-nul")
            self.ask(
                "add",
                "--all",
                "--ignore-errors",
                *paths,
                given=b"\0".join([b".", *EXCLUDED_PATHS, *left_out]),
                environment=index,
            )
            self._forget_repositories_within(index)  # a file can have become a repository
            return self.ask("write-tree", environment=index).decode().strip()

    def _is_private(self, path: bytes) -> bool:
        """Return whether an untracked file has the name of a secret, or is large and no code. No step holds such a file."""
        name = os.fsdecode(path)
        if SECRET.fullmatch(Path(name).name):
            return True
        try:
            return not name.endswith(".py") and (self.root / name).lstat().st_size > LARGE_FILE_BYTES
        except OSError:
            return False

    def _forget_repositories_within(self, index: Mapping[str, str]) -> None:
        entries = self.ask("ls-files", "-z", "--stage", environment=index).split(b"\0")
        paths = [entry.partition(b"\t")[2] for entry in entries if entry.startswith(REPOSITORY_MODE)]
        if paths:
            self.ask("update-index", "-z", "--force-remove", "--stdin", given=b"\0".join(paths), environment=index)

    def commit(self, tree: str, message: str) -> str:
        """Commit a tree as the last step, so that git keeps its contents. Two processes may do so at the same time."""
        for _ in range(20):
            last = self._last()
            parents = ("-p", last) if last else ()
            made = self.ask("commit-tree", _checked(tree), *parents, "-m", message, environment=AUTHOR).decode().strip()
            try:
                self.ask("update-ref", STEPS, made, last or "0" * 40)
            except CodeError:
                continue
            return made
        raise CodeError(f"{STEPS} is being changed by other processes; try again")

    def restore(self, before: str, after: str) -> None:
        """Write into the working tree what differs between its snapshot and a tree. The user's index does not change."""
        new = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A")
        for name in map(os.fsdecode, self.ask(*new, _checked(before), _checked(after)).split(b"\0")):
            if name and os.path.lexists(self.root / name):
                raise CodeError(f"{name} would be written over, and no step holds its content; move it away")
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            self.ask("read-tree", _checked(before), environment=index)
            self.ask("update-index", "-q", "--refresh", environment=index)
            self.ask("read-tree", "-m", "-u", _checked(before), _checked(after), environment=index)

    def hold_only(self, trees: Collection[str], blobs: Collection[str]) -> int:
        """Let the ref of the steps hold only these trees and contents, and trees that are newer.

        Returns:
            The bytes of the objects that no ref holds any more.
        """
        last = self._last()
        if not last:
            return 0
        steps = [line.split(" ", 1) for line in self.ask("log", "--format=%T %s", last).decode().splitlines()]
        newer = itertools.takewhile(lambda step: step[0] not in trees, steps)  # another process is about to add their steps
        notes = dict([*newer, *(step for step in steps if step[0] in trees)])
        listing = "".join(f"100644 blob {_checked(blob)}\t{blob}\n" for blob in sorted(blobs))
        made = self.commit_of(self.ask("mktree", given=listing.encode()).decode().strip())
        for tree, note in reversed(notes.items()):
            made = self.ask("commit-tree", tree, "-p", made, "-m", note, environment=AUTHOR).decode().strip()
        self.ask("update-ref", STEPS, made, last)
        freed = self.ask("rev-list", "--objects", "--no-object-names", last, "--not", "--all", "--indexed-objects")
        return sum(map(int, self.ask("cat-file", "--batch-check=%(objectsize:disk)", given=freed).split()))

    def commit_of(self, tree: str) -> str:
        """Make a commit with this tree and without a parent, and return its id."""
        return self.ask("commit-tree", _checked(tree), "-m", "bench code", environment=AUTHOR).decode().strip()

    def first_tree(self) -> str:
        """Return the tree of the commit from which a linked worktree began; "" in the main worktree."""
        if not (self.root / ".git").is_file():
            return ""
        return self.ask("rev-parse", "HEAD^{tree}").decode().strip()

    def _last(self) -> str:
        try:
            return self.ask("rev-parse", "--verify", "--quiet", STEPS).decode().strip()
        except CodeError:
            return ""

    def changed(self, before: str, after: str) -> Sequence[str]:
        """Return the paths that differ between two trees; all if the first is "". Names that are not UTF-8 are left out."""
        if not before:
            listing = self.ask("ls-tree", "-r", "-z", "--name-only", _checked(after))
        else:
            how = ("-r", "-z", "--no-renames", "--name-only", "--ignore-submodules=all")
            listing = self.ask("diff-tree", *how, _checked(before), _checked(after))
        return [path for name in listing.split(b"\0") if name and is_text(path := os.fsdecode(name))]

    def files(self, tree: str) -> dict[str, str]:
        """Return for each file of a tree its mode and the id of its content."""
        entries = (entry.partition(b"\t") for entry in self.ask("ls-tree", "-r", "-z", _checked(tree)).split(b"\0") if entry)
        return {
            os.fsdecode(name).encode("utf-8", "backslashreplace").decode(): about.decode().replace(" blob", "")
            for about, _, name in entries
        }

    def blob_at(self, tree: str, path: str) -> str:
        """Return the id of a file's content in a tree; "" if the tree does not have the file."""
        _, kind, name = self.ask("ls-tree", "-z", _checked(tree), "--", path).partition(b"\t")[0].split() or [b""] * 3
        return name.decode() if kind == b"blob" else ""

    def merged(self, ours: bytes | None, base: bytes | None, theirs: bytes | None) -> bytes | None:
        """Return a text with both changes of a base, as `git merge-file` merges them; None if they conflict or one is none."""
        if ours is None or base is None or theirs is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("ours", "base", "theirs")]
            for file, content in zip(files, (ours, base, theirs), strict=True):
                file.write_bytes(content)
            command = ("git", "merge-file", "-p", "-q", *map(str, files))
            finished = subprocess.run(command, capture_output=True, check=False)
        return finished.stdout if finished.returncode == 0 else None


def _checked(name: str) -> str:
    """Return an id that the state names. Raises CodeError if it is no id."""
    if not ID.fullmatch(name):
        raise CodeError(f"the state names '{name[:80]}', which is no id of git's; it was not written by bench code")
    return name


def _guards(root: Path) -> dict[str, str]:
    """Return the variables under which git runs nothing that the repository's own settings name.

    A repository that came as an archive brings settings with it. A monitor, a hook or a filter of theirs would run as the user.
    The user's own filters run as ever.
    """
    listing = ("git", "-C", str(root), "config", "--null", "--show-scope", "--get-regexp", r"^filter\.")
    words = os.fsdecode(subprocess.run(listing, capture_output=True, check=False).stdout).split("\0")
    of_user, foreign = dict[str, str](), list[str]()
    for scope, setting in zip(words[::2], words[1::2], strict=False):
        key, _, value = setting.partition("\n")
        foreign += [key] if scope in FOREIGN_SCOPES else []
        of_user |= {} if scope in FOREIGN_SCOPES else {key: value}
    settings = {key: of_user.get(key, "false" if key.endswith(".required") else "") for key in foreign} | NOT_RUN
    before = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
    numbered = {
        f"GIT_CONFIG_{what}_{number}": text
        for number, pair in enumerate(settings.items(), before)
        for what, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return numbered | NOT_FETCHED | {"GIT_CONFIG_COUNT": str(before + len(settings))}


def is_text(name: str) -> bool:
    """Return whether a name from the system is UTF-8. SQLite stores no other text."""
    return name.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in name)
