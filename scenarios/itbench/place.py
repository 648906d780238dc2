"""Find the snapshots: one folder each, with a ground_truth.yaml and the recorded data."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from bench.common.errors import PackError, Unavailable

SETTING, TRUTH = "BENCH_ITBENCH", "ground_truth.yaml"
FETCH = "hf download ibm-research/ITBench-Lite --repo-type dataset --include 'snapshots/sre/*'"


def snapshots(pack: Path) -> Mapping[str, Path]:
    """Return the folder of every snapshot by instance, at any depth below BENCH_ITBENCH or `snapshots/` of the pack.

    Raises Unavailable where there is none, or PyYAML is not installed; PackError where two are one instance.
    """
    root = Path(os.environ.get(SETTING) or pack / "snapshots")
    if find_spec("yaml") is None:
        raise Unavailable("it reads YAML; pip install '.[itbench]'")
    folders = sorted((path.parent for path in root.rglob(TRUTH)), key=_order)
    if not folders:
        raise Unavailable(f"{root} holds no snapshot; {FETCH} --local-dir {root} (see {pack / 'README.md'})")
    found: dict[str, Path] = {}
    for folder in folders:
        name = _name(folder)
        if name in found:
            raise PackError(f"{found[name]} and {folder} are both '{name}'; keep one of them")
        found[name] = folder
    return found


def _name(folder: Path) -> str:
    """Return the name of an instance: `Scenario-12` is `scenario_12`."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")
    return name if name[:1].isalpha() else f"scenario_{name}"


def _order(folder: Path) -> tuple[int, str]:
    number = re.search(r"\d+$", folder.name)
    return (int(number[0]) if number else 0, str(folder))
