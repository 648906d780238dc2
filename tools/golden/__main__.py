"""Compare what the code gives now with the golden file, or write that anew: three minutes on one core.

PYTHONPATH=tools python -m golden [WORD ...]            say what differs in the items whose names hold a word, or in all
PYTHONPATH=tools python -m golden --write [WORD ...]    say it, and take it over
"""

from __future__ import annotations

import subprocess
import sys

from golden.adapter import ROOT
from golden.differences import FILE, differences, read, write
from golden.items import items


def committed_runs() -> list[str]:
    """Return the names of the runs that git holds, as folders or as archives."""
    listed = subprocess.run(["git", "ls-files", "results"], cwd=ROOT, capture_output=True, text=True, check=True)
    in_results = {line.split("/")[1] for line in listed.stdout.splitlines()} - {"index.json"}
    return sorted(name.removesuffix(".zip") for name in in_results)


def main(words: list[str], take_over: bool) -> int:
    """Return 1 where something differs that is not taken over."""
    kept = read() if FILE.exists() else {}
    made = items(committed_runs())
    mismatches = [f"{name}: is gone" for name in sorted(kept.keys() - made.keys())]
    for name in mismatches if take_over else ():
        del kept[name.removesuffix(": is gone")]
    for name, make in made.items():
        if any(word in name for word in words) or not words:
            now = make()
            mismatches += [f"{name}: {line}" for line in (differences(kept[name], now) if name in kept else ["is new"])]
            kept[name] = now.kept
    print("\n".join(mismatches) or "nothing differs")
    if take_over:
        write(kept)
    return int(bool(mismatches) and not take_over)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main([word for word in given if word != "--write"], "--write" in given))
