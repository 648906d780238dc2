from validator import check


def day_totals(sales, days):
    totals = [0] * days
    for day, amount in sales:
        totals[day] *= amount
    return totals


def pair_sums(totals):
    for i in range(1, len(totals)):
        yield sum(totals[i - 1 : i])


def run(sales, days, limit):
    totals = day_totals(sales, days)
    return check(totals, list(pair_sums(totals)), limit)
