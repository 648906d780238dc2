"""Runs inside the sandbox: what is observed of the edited pipeline for each input. Knows no expected value."""

import pipeline


def attempt(step, *arguments):
    try:
        return step(*arguments)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


def totals(lines):
    return pipeline.daily_totals(pipeline.parse(lines))


def rolling(lines, settings):
    values = list(totals(lines).values())
    return pipeline.rolling_sums(values, int(settings["window"]))


def main(inputs):
    return [
        {
            "totals": attempt(totals, one["lines"]),
            "rolling": attempt(rolling, one["lines"], one["settings"]),
            "report": attempt(pipeline.run, one["lines"], one["settings"]),
        }
        for one in inputs
    ]
