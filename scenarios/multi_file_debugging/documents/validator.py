"""Refuses an impossible sales report; marks the days over the limit."""


class ReportError(ValueError):
    pass


def check_totals(totals):
    if not totals:
        raise ReportError("no sales at all")
    for day, total in totals.items():
        if total == 0:
            raise ReportError(f"{day}: total is zero")


def check_rolling(rolling, totals, width):
    recent = list(totals.values())[-width:]
    if rolling[-1] != sum(recent):
        raise ReportError(f"last rolling sum is {rolling[-1]}")


def find_alerts(rolling, days, limit):
    return [day for day, value in zip(days, rolling) if value > limit]


def check_report(report, settings):
    totals, rolling = report["totals"], report["rolling"]
    check_totals(totals)
    check_rolling(rolling, totals, int(settings["window"]))
    report["alerts"] = find_alerts(rolling, list(totals), settings["limit"])
