"""Tries what is promised, into `reports/reliability`: twenty minutes on two cores.

PYTHONPATH=tools/reports python -m reliability [--load-only | --no-load | --promise NAME | --attack NAME]...
                                               [--repeats N] [FOLDER]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reliability.guarded import all_guarded
from reliability.kept import Attacked, Guarded, Made, Measured, Taken, Tried, read, write
from reliability.load import CELLS, measured
from reliability.promises import PROMISES, all_tried
from reliability.report import page
from reliability.strangers import ATTACKS, attacked

ROOT = Path(__file__).parents[3]
NAMES = [promise.name for promise in PROMISES]


def machine() -> str:
    """Return the number of cores, and the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores, {next(models, 'an unnamed processor')}"


def note(folder: Path, part: str) -> None:
    """Write on what machine this part was made."""
    others = [made for made in read(folder, Made) if made.part != part]
    write(folder, Made, [*others, Made(part, machine(), round(os.getloadavg()[0], 1))])


def try_anew(folder: Path, names: Sequence[str]) -> None:
    """Try the promises of these names. The results of the others stay."""
    tried_by_name = {tried.promise: tried for tried in read(folder, Tried) if tried.promise in NAMES}
    most = {(measured.place, measured.what): measured for measured in read(folder, Measured)} if len(names) < len(NAMES) else {}
    for tried, measures in all_tried(names):
        tried_by_name[tried.promise] = tried
        most |= {(measured.place, measured.what): measured for measured in measures}
    write(folder, Tried, [tried_by_name[name] for name in NAMES if name in tried_by_name])
    write(folder, Measured, list(most.values()))


def attack_anew(folder: Path, names: Iterable[str]) -> None:
    """Try the attacks of these names. The results of the others stay."""
    by_name = {row.attack: row for row in (*read(folder, Attacked), *attacked(names))}
    write(folder, Attacked, [by_name[name] for name in ATTACKS if name in by_name])


def main() -> None:
    parser = argparse.ArgumentParser(prog="reliability")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--load-only", action="store_true", help="measure the load anew; the rest stays")
    which.add_argument("--no-load", action="store_true", help="all but the load, which stays")
    which.add_argument("--promise", choices=NAMES, metavar="NAME", action="append", help="try it anew; the rest stays")
    which.add_argument("--attack", choices=ATTACKS, metavar="NAME", action="append", help="try it anew; the rest stays")
    parser.add_argument("--repeats", type=int, default=3, help="of each run under load")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "reports" / "reliability")
    asked = parser.parse_args()
    everything = not (asked.load_only or asked.promise or asked.attack)
    if asked.load_only or (everything and not asked.no_load):
        write(asked.folder, Taken, list(measured(CELLS, asked.repeats)))
        note(asked.folder, "load")
    if asked.promise or everything:
        try_anew(asked.folder, asked.promise or NAMES)
        note(asked.folder, "promises")
    if asked.attack or everything:
        attack_anew(asked.folder, asked.attack or ATTACKS)
        note(asked.folder, "attacks")
    if everything:
        write(asked.folder, Guarded, all_guarded())
        note(asked.folder, "guards")
    (asked.folder / "README.md").write_text(page(asked.folder), encoding="utf-8")


if __name__ == "__main__":
    main()
