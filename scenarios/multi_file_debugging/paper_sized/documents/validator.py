def check(totals, sums, limit):
    assert 0 not in totals, "zero total"
    assert sums[-1] == totals[-2] + totals[-1], "wrong sum"
    return [one > limit for one in sums]
