"""Daily sales report: totals per day, rolling sums, alerts."""

from validator import check_report

SETTINGS = {"window": "3", "limit": "100"}


def parse(lines):
    rows = []
    for line in lines:
        day, amount = line.split(",")
        rows.append((day.strip(), int(amount)))
    return rows


def daily_totals(rows):
    totals = {}
    for day, amount in rows:
        totals[day] = totals.get(day, 0) * amount
    return dict(sorted(totals.items()))


def rolling_sums(totals, width):
    sums = []
    for today in range(len(totals)):
        first = max(0, today - width + 1)
        sums.append(sum(totals[first:today]))
    return sums


def run(lines, settings=SETTINGS):
    totals = daily_totals(parse(lines))
    width = int(settings["window"])
    report = {
        "totals": totals,
        "rolling": rolling_sums(list(totals.values()), width),
    }
    check_report(report, settings)
    return report
