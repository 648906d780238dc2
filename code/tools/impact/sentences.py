"""What came out of the measurements, in sentences. The report and the page on code that agents change have the same."""

from __future__ import annotations

from statistics import median

from impact.rows import Parts, Rows, changing, limit, lossy, selecting, share, total

Times = dict[str, list[float]]
"""For each thing that was timed in a package, all its times."""


def results(parts: Parts) -> list[str]:
    """What came out of all measurements, in sentences."""
    edits, suites = parts["edits"], parts["suites"]
    return [*of_edits(edits), *of_suites(suites), of_costs(edits, suites), *of_times(parts["times"])]


def of_edits(rows: Rows) -> list[str]:
    """What edits of open packages lost, in words. The unit is the edit."""
    packages, count = len({row["package"] for row in rows}), len(changing(rows))
    broken = sum(int(row["changed"]) > 0 and not int(row["tests"]) for row in rows)
    kept = selecting(changing(rows))
    wrong = {name: sum(int(row[f"{name} wrong"]) > 0 for row in rows) for name in ("bench", "testmon")}
    return [
        f"`bench code run` was typed after each of {len(rows)} edits of {packages} open packages. {count} of them changed a "
        f"result of a test, beside {broken} after which no test could be collected. `bench code` lost a result in "
        f"{_limited(rows, 'bench')}, and pytest-testmon in {_limited(rows, 'testmon')}.",
        f"After {len(kept)} of the {count} edits `bench code` kept results. It lost a result after {lossy(kept, 'bench')} of "
        f"these (at most {limit(kept, 'bench')}). After the others it ran all tests that there were.",
        f"After the {count} edits `bench code` ran {share(changing(rows), 'bench')} of the tests, and pytest-testmon "
        f"{share(changing(rows), 'testmon')}; after all edits {share(rows, 'bench')} and {share(rows, 'testmon')}.",
        f"A test that ran came out otherwise than in a plain run in {wrong['bench']} of the {len(rows)} sessions of `bench "
        f"code` and {wrong['testmon']} of pytest-testmon.",
    ]


def of_suites(suites: Rows) -> list[str]:
    """What was left out, and what changes because tests are recorded, in words."""
    return [
        f"{total(suites, 'unsteady')} of {total(suites, 'tests') + total(suites, 'unsteady'):,} tests differ between two plain "
        f"runs, and after {total(suites, 'left out')} of the edits that were drawn the tests did not end. These are left out. "
        f"{total(suites, 'differ')} tests come out otherwise in the first session.",
    ]


def of_costs(rows: Rows, suites: Rows) -> str:
    """What a session after an edit costs beside all tests, in words."""
    plain = {row["package"]: float(row["plain s"]) for row in suites}
    ours, theirs = (median(float(row[f"{name} s"]) / plain[row["package"]] for row in rows) for name in ("bench", "testmon"))
    firsts = [float(row["first s"]) / float(row["plain s"]) for row in suites]
    return (
        f"In these suites, whose tests take {_span(list(plain.values()))} seconds of the processor, a session after an edit "
        f"took {ours:.2f} times the processor seconds of all tests in the median, of pytest-testmon {theirs:.2f} times, and "
        f"the first run {_span(firsts)} times."
    )


def of_times(rows: Rows) -> list[str]:
    """What sessions cost in suites of five seconds and more, in words."""
    if not rows:
        return []
    suites, bodies = timed(rows), body_ratios(rows)
    firsts = [min(of["first"]) / min(of["plain"]) for of in suites.values()]
    nothing = [min(of["nothing"]) for of in suites.values()]
    plain = [min(of["plain"]) for of in suites.values()]
    under, over = sum(each <= 0.6 for each in bodies), sum(each > 1.1 for each in bodies)
    return [
        f"After an edit of a body a session took {_span(bodies)} times as long as all tests (median {median(bodies):.2f}): at "
        f"most 0.6 times after {under} of {len(bodies)} edits, and more than 1.1 times after {over}.",
        f"Where nothing changed, a session took {_span(nothing)} seconds. The first run took "
        f"{_span(firsts)} times a plain run ({len(suites)} suites, whose tests take {_span(plain)} seconds).",
    ]


def timed(rows: Rows) -> dict[str, Times]:
    """For each package all times."""
    found: dict[str, Times] = {}
    for row in rows:
        found.setdefault(row["package"], {})[row["what"]] = [float(each) for each in row["s"].split()]
    return found


def body_ratios(rows: Rows) -> list[float]:
    """For each edit of a body, how often the time of all tests its session took."""
    return [
        min(taken) / min(of["plain"])
        for of in timed(rows).values()
        for what, taken in of.items()
        if what not in ("plain", "first", "nothing")
    ]


def _limited(rows: Rows, selector: str) -> str:
    return f"{lossy(rows, selector)} of them (at most {limit(changing(rows), selector)} at 95%, by package)"


def _span(values: list[float]) -> str:
    return " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(values), max(values))))
