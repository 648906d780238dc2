"""The image installs what the lock names by digest, and runs as a user without privileges. `nox -s lint` reads it, too."""

from __future__ import annotations

import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [line.split(maxsplit=1) for line in TEXT.splitlines() if line and not line.startswith("#")]


def of_kind(kind: str) -> list[str]:
    return [rest for word, rest in STEPS if word == kind]


def test_what_it_copies_exists() -> None:
    sources = [word for rest in of_kind("COPY") for word in shlex.split(rest)[:-1] if not word.startswith("--")]
    assert sources == ["requirements.lock", "."]
    assert all((ROOT / source).exists() for source in sources)


def test_every_package_is_held_to_a_digest_or_is_ours() -> None:
    installs = [rest for rest in of_kind("RUN") if "pip install" in rest]
    assert len(installs) == 2
    assert all("--require-hashes" in rest or {"--no-deps", "--no-index"} <= set(rest.split()) for rest in installs)


def test_it_runs_as_no_root() -> None:
    assert of_kind("USER") == ["1000"]
    last = [word for word, _ in STEPS]
    assert last.index("USER") > max(place for place, word in enumerate(last) if word in ("RUN", "COPY"))
