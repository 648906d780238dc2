"""Edits: the changes of single files that a patch is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench_code.git import CodeError
from bench_code.units import parse


@dataclass(frozen=True)
class Edit:
    """A change of one file.

    path      the file, relative to the top of the tree
    before    the content that the edit changes; None if it makes the file
    after     the content after the edit; None if it removes the file
    """

    path: str
    before: bytes | None
    after: bytes | None

    @classmethod
    def write(cls, root: Path, path: str, content: str | None) -> Edit:
        """Make an edit that writes a whole file, or removes it.

        Args:
            root: The top of the tree.
            path: The file, relative to it.
            content: The file's new content; None to remove the file.

        Returns:
            The edit.
        """
        return cls(path, content_in(root, path), None if content is None else content.encode())

    @classmethod
    def replace(cls, root: Path, path: str, old: str, new: str) -> Edit:
        """Make an edit that replaces a text in a file.

        Args:
            root: The top of the tree.
            path: The file, relative to it.
            old: The text to replace.
            new: The text in its place.

        Returns:
            The edit.

        Raises:
            CodeError: The file cannot be read, or does not hold the text exactly once.
        """
        text = _text(root, path)
        if text.count(old) != 1:
            raise CodeError(f"{path} holds the text to replace {text.count(old)} times; give one that it holds once")
        return cls(path, text.encode(), text.replace(old, new).encode())

    @classmethod
    def function(cls, root: Path, artifact: str, source: str) -> Edit:
        """Make an edit that replaces the source of a function or a class.

        Args:
            root: The top of the tree.
            artifact: The function or class, as `path::name`.
            source: The new source. It is indented as the artifact is.

        Returns:
            The edit.

        Raises:
            CodeError: There is no such artifact.
        """
        path, _, name = artifact.partition("::")
        text = _text(root, path)
        module = parse(text.encode())
        unit = next((unit for unit in module.units if unit.name == name), None)
        if unit is None:
            raise CodeError(module.why_not(path, name))
        lines = text.splitlines(keepends=True)
        indent = lines[unit.first - 1][: len(lines[unit.first - 1]) - len(lines[unit.first - 1].lstrip())]
        new = [f"{indent}{line}\n" if line.strip() else "\n" for line in source.strip("\n").splitlines()]
        return cls(path, text.encode(), "".join((*lines[: unit.first - 1], *new, *lines[unit.last :])).encode())

    @property
    def reversed(self) -> Edit:
        """The edit that takes this edit back."""
        return Edit(self.path, self.after, self.before)

    @property
    def targets(self) -> list[str]:
        """The artifacts that the edit changes."""
        if not self.path.endswith(".py") or self.before is None or self.after is None:
            return [self.path]
        old, new = parse(self.before), parse(self.after)
        units = {(unit.name, unit.digest) for unit in old.units} ^ {(unit.name, unit.digest) for unit in new.units}
        names = sorted({f"{self.path}::{name}" for name, _ in units})
        return names or [self.path]


def file_in(root: Path, path: str) -> Path:
    """Return the file at a path of a tree, for an edit to write.

    Args:
        root: The top of the tree.
        path: The file, relative to it. It may come from another person's state.

    Returns:
        The file.

    Raises:
        CodeError: The path leads out of the tree, by its parts or by a link in the tree, or into a folder of git's.
    """
    file, top = root / path, root.resolve()
    try:
        real = file.resolve()
        real.exists()
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, a name that is too long, a zero byte
        raise CodeError(f"{path!r} is no path: {error}") from None
    if Path(path).is_absolute() or ".." in Path(path).parts or real == top or not real.is_relative_to(top):
        raise CodeError(f"{path!r} leads out of {root}, and no patch writes there")
    if ".git" in {part.lower() for part in (*Path(path).parts, *real.relative_to(top).parts)}:
        raise CodeError(f"{path!r} is a file of git's, and no patch writes there")
    return file


def content_in(root: Path, path: str) -> bytes | None:
    """Return the content of the file at a path of a tree.

    Args:
        root: The top of the tree.
        path: The file, relative to it.

    Returns:
        The content; None if there is no file.

    Raises:
        CodeError: The path leads out of the tree, or into a folder of git's.
    """
    file = file_in(root, path)
    return file.read_bytes() if file.is_file() else None


def _text(root: Path, path: str) -> str:
    try:
        return (root / path).read_text(encoding="utf-8")
    except OSError as error:
        raise CodeError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CodeError(f"{path} is no text in UTF-8") from None
