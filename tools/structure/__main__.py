"""PYTHONPATH=tools python -m structure [--at COMMIT]"""

from __future__ import annotations

import argparse

from structure import commands
from structure.counts import arrows_of, folder_of, room_of, rooms_of, size_of, sources
from structure.walks import walks


def main() -> None:
    parser = argparse.ArgumentParser(prog="structure", description=__doc__)
    parser.add_argument("--at", metavar="COMMIT", help="count the source of a commit; its trips are not made")
    commit = parser.parse_args().at
    files = sources(commit)
    size = size_of(files)
    folders = len(rooms_of(files, folder_of))
    print(f"{size.lines:,} lines of code, {size.statements:,} statements, {size.files} files in {folders} folders")
    print(f"{len(arrows_of(files, room_of))} arrows between the {len(rooms_of(files, room_of))} rooms")
    print(f"{len(arrows_of(files, folder_of))} arrows between the folders")
    if commit is None:
        for trip, definitions in walks().items():
            print(f"{trip}: {len(definitions)} definitions in {len({file for file, _ in definitions})} files")
        for command, count in commands.counts().items():
            print(f"{command}: {count}")


if __name__ == "__main__":
    main()
