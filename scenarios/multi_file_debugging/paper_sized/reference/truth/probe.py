"""Runs inside the sandbox: what is observed of the edited pipeline for each input. Knows no expected value."""

import pipeline


def attempt(step, *arguments):
    try:
        return step(*arguments)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {error}"}


def sums(sales, days):
    return list(pipeline.pair_sums(pipeline.day_totals(sales, days)))


def main(inputs):
    return [
        {
            "totals": attempt(pipeline.day_totals, one["sales"], one["days"]),
            "rolling": attempt(sums, one["sales"], one["days"]),
            "report": attempt(pipeline.run, one["sales"], one["days"], one["limit"]),
        }
        for one in inputs
    ]
