"""What came out of the measurements, in sentences. The report and the page on code that agents change have the same."""

from __future__ import annotations

import itertools

from impact.decision import REASONS
from impact.rows import (
    SELECTORS,
    Parts,
    Rows,
    edits_in,
    in_whole_suites,
    limit,
    of_selector,
    saved_by,
    seconds_of,
    share,
    sums,
    total,
    where_testmon_missed_nothing,
)


def sentences(rows: Rows, edit: str = "mutant") -> list[str]:
    """What came out, in words; an edit is a mutant, or a hunk between a release and the next."""
    edits = sum(row["selector"] == "bench" for row in rows)
    packages = len({row["package"] for row in rows})
    of = f"{packages} open packages" if edit == "mutant" else f"the step from {packages} releases to the next"
    lines = [f"{edits} {edit}s of {of} changed {total(rows, 'changed', 'bench'):,} results of tests."]
    if widest := sum(row["choice"] == "widest" for row in rows if row["selector"] == "bench"):
        lines.append(
            f"{edits - widest} of them were taken as drawn; at most half of these change no result. {widest} were taken because"
            " they change the most results of the others, though at most half of a suite's."
        )
    for selector, word in (("bench", "`bench code`"), ("testmon", "pytest-testmon")):
        missed, changed, judged = total(rows, "missed", selector), total(rows, "changed", selector), of_selector(rows, selector)
        struck = sum(int(row["missed"]) > 0 for row in judged)
        lines.append(
            f"{word} missed {missed:,} of {changed:,} changed results, in {struck} of {len(judged)} {edit}s (at most "
            f"{limit(struck, len(judged))} at 95%), and ran {share(rows, selector):.1f}% of the tests."
        )
    return lines


def results(parts: Parts) -> list[str]:
    """What came out of all measurements, in sentences."""
    every = edits_in(parts)
    (ours, changed), (theirs, beside) = [[total(every, key, name) for key in ("missed", "changed")] for name in SELECTORS]
    edits = len(of_selector(every, "bench"))
    changing = [row for row in of_selector(every, "bench") if int(row["changed"])]
    struck, broken = sum(int(row["missed"]) > 0 for row in changing), in_whole_suites(every)
    fair = where_testmon_missed_nothing(every)
    least = 100 * changed / max(1, total(every, "tests", "bench"))
    return [
        of_commits(parts["commits"]),
        f"{len(changing)} of {edits} edits of open packages changed a result of a test. `bench code` missed a result in "
        f"{struck} of them (at most {limit(struck, len(changing))} at 95%).",
        f"They changed {changed:,} results; {len(broken)} edits changed every test of a package, {sum(broken):,} results in "
        f"all. `bench code` missed {ours}, and pytest-testmon {theirs:,} of {beside:,}.",
        f"`bench code` ran {share(every, 'bench'):.1f}% of the tests; {least:.1f}% of all tests changed their result. Over the "
        f"{len(fair) // 2} edits of which pytest-testmon missed nothing, `bench code` ran {share(fair, 'bench'):.1f}% and "
        f"pytest-testmon {share(fair, 'testmon'):.1f}%.",
        beyond(parts["unfollowed"]),
        slower(parts["recording"]),
    ]


def of_commits(commits: Rows) -> str:
    """What came out of the commits of this repository, in words."""
    tests, changed, run, missed = sums(commits, "tests", "changed", "run", "missed")
    seconds, whole = seconds_of(commits)
    return (
        f"Over {len(commits)} commits of this repository, {tests:,} results of tests were compared. Of these, {changed} "
        f"changed or came new, and `bench code` missed {missed}. It ran {run:,} tests, which took {seconds:,.0f} seconds of "
        f"the processor; all tests took {whole:,.0f}."
    )


def of_ignoring(commits: Rows) -> str:
    """What came out of the same commits where the clock and chance are ignored, in words."""
    run, missed = sums(commits, "run", "missed")
    seconds, whole = seconds_of(commits)
    return (
        f"With `bench_impact_ignores = clock chance`, {run:,} tests ran after the same commits, and {missed} results were "
        f"missed. They took {seconds:,.0f} seconds, and all tests took {whole:,.0f}. {saved_by(commits) or 'None'} of the "
        "commits took less than all tests."
    )


def beyond(unfollowed: Rows) -> str:
    """What was missed of what a selector by code coverage does not follow, in words."""
    counts = [[total(unfollowed, key, selector) for key in ("missed", "changed")] for selector in SELECTORS]
    (ours, changed), (theirs, _) = counts
    return (
        f"A data file, an absent file, a variable, the order of tests or a dynamic import changed the results of {changed} "
        f"generated tests. `bench code` missed {ours} of them (at most {limit(ours, changed)} at 95%), and pytest-testmon "
        f"{theirs}."
    )


def of_programs(programs: Rows) -> str:
    """What came out of the generated programs, in words."""
    count, mismatches, kept, results = sums(programs, "programs", "mismatches", "kept", "results")
    return (
        f"{count:,} small generated programs were each edited at random, after which they had {results:,} results of tests. "
        f"`bench code` kept {kept:,} of them and made the others anew; {mismatches} were otherwise than in a full run."
    )


def needless(*parts: Rows) -> str:
    """Why tests ran that came out the same, in words."""
    counts = {key: sum(int(row[key]) for row in itertools.chain(*parts)) for key in REASONS if key != "changed"}
    of = {key: f"{100 * count / max(1, sum(counts.values())):.0f}%" for key, count in counts.items()}
    return (
        f"Of the {sum(counts.values()):,} tests that ran and came out the same, {of['skeletons']} relied on a skeleton that "
        f"changed, {of['bodies']} ran a body that changed, {of['reads']} read a file or a variable that changed, and "
        f"{of['volatile']} are never kept."
    )


def slower(costs: Rows) -> str:
    """What recording costs, in words."""
    ratios = [float(row["bench"]) / float(row["plain"]) for row in costs]
    longest = max(float(row["deciding"]) for row in costs)
    return (
        f"Recording took {min(ratios):.2f} to {max(ratios):.2f} times the processor seconds of a plain run in {len(costs)} "
        f"packages. Deciding what an edit invalidates took at most {longest:.2f} seconds."
    )
