"""What came out of the measurements, in sentences. The report and the page on code that agents change have the same."""

from __future__ import annotations

from impact.rows import Parts, Rows, limit, lossy, of_selector, share, total


def results(parts: Parts) -> list[str]:
    """What came out of all measurements, in sentences."""
    lines = [*of_edits(parts["edits"]), of_recording(parts["suites"])]
    lines += of_times(parts["times"]) if parts["times"] else []
    return [*lines, beyond(parts["unfollowed"])] if parts["unfollowed"] else lines


def of_edits(rows: Rows) -> list[str]:
    """What edits of open packages lost, in words. The unit is the edit."""
    edits, packages = len(of_selector(rows, "full")), len({row["package"] for row in rows})
    count, ours = len(of_selector(rows, "bench")), lossy(rows, "bench")
    lines = [
        f"{count} of {edits} edits of {packages} open packages changed a result of a test. `bench code` lost a result in "
        f"{ours} of these {count} edits (at most {limit(ours, count)} at 95%).",
        f"It missed {total(rows, 'missed', 'bench'):,} of {total(rows, 'changed', 'bench'):,} changed results, and ran "
        f"{share(rows, 'bench')} of the tests after these edits.",
    ]
    if beside := len(of_selector(rows, "testmon")):
        lines.append(
            f"pytest-testmon lost a result in {lossy(rows, 'testmon')} of {beside} edits, and ran {share(rows, 'testmon')} of "
            "the tests."
        )
    return lines


def decided(rows: Rows) -> str:
    """After how many edits a session ran, in words."""
    ours = of_selector(rows, "bench")
    ran = sum(float(row["seconds"]) > 0 for row in ours)
    return (
        f"`bench code run` ran after {ran} of the {len(ours)} edits that changed a result. After the others it was only "
        "decided what would run; it would have run where that lost a result."
    )


def of_times(rows: Rows) -> list[str]:
    """What a session costs after an edit of a body, and where nothing changed, in words."""
    bodies, nothing = ([row for row in rows if (row["edit"] == "none") == unchanged] for unchanged in (False, True))
    return [
        f"After an edit of a body, it took {_span([ratio(row) for row in bodies])} times the processor seconds of all tests, "
        f"and where nothing changed {_span([ratio(row) for row in nothing])} times (number of edits: {len(bodies)}; suites: "
        f"{len(nothing)}, of {_span([float(row['all']) for row in nothing])} seconds).",
    ]


def of_recording(suites: Rows) -> str:
    """What recording costs, in words."""
    ratios = [float(row["bench"]) / float(row["full"]) for row in suites]
    return f"The first run, which records all tests, took {_span(ratios)} times a plain run in {len(ratios)} packages."


def beyond(unfollowed: Rows) -> str:
    """What was missed of what a selector by code coverage does not follow, in words."""
    (ours, changed), (theirs, _) = [
        [total(unfollowed, key, selector) for key in ("missed", "changed")] for selector in ("bench", "testmon")
    ]
    return (
        f"A data file, an absent file, a variable, the order of tests or a dynamic import changed the results of {changed} "
        f"generated tests. After a run with `--reversed`, `bench code` missed {ours} of them, and pytest-testmon {theirs}."
    )


def ratio(row: dict[str, str]) -> float:
    """What a session took of the time of all tests."""
    return float(row["bench"]) / float(row["all"])


def _span(values: list[float]) -> str:
    ends = dict.fromkeys(f"{end:.2f}" for end in (min(values), max(values))) if values else {"-": None}
    return " to ".join(ends)
