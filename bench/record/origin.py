"""The origin of a run's results: the code and the machine that produced them, as a manifest has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bench.common.numbers import Count
from bench.record.entry import ManifestPart


def names_package(digest: str) -> bool:
    """Whether a digest is that of another package's part, which begins with the package's name (`Codebase.of_part`)."""
    return " " in digest


class CodeVersion(ManifestPart):
    """The version of our package; in a git checkout also its commit, and whether files differ from it."""

    version: str = "–"
    commit: str | None = None
    dirty: bool | None = None
    digest: str = "–"
    """The digest of the code that determines every trial."""
    digest_of: Literal["bytes", "syntax"] = "bytes"
    """What was digested: the bytes of the code's files, as versions before this key did, or their syntax trees."""

    @property
    def text(self) -> str:
        """The version, the commit and the digest, in words."""
        changed = "dirty: files differ from it" if self.dirty else "clean"
        commit = f"commit {self.commit[:12]} ({changed})" if self.commit else "no commit known"
        return f"version {self.version}, {commit}, digest {self.digest} of its {self.digest_of}"


def digests_text(codes: Sequence[CodeVersion]) -> str:
    """Return the digests of the code versions that ran a run's trials, as one text."""
    return " + ".join(code.digest for code in codes)


class Machine(ManifestPart):
    """The kind of a machine, without a name, an address or a path."""

    system: str | None = None
    release: str | None = None
    machine: str | None = None
    processors: Count | None = None
