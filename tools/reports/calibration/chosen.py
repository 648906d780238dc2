"""The method that the suite takes for the interval of each kind of number, and why."""

from __future__ import annotations

CHOSEN = {
    "difference": (
        "Student's t",
        "a difference has no bound, and those of pairs lie about as evenly as their mean needs; below ten pairs both "
        "percentile and BCa hold the truth less often",
    ),
    "amount": (
        "Student's t of the mean's logarithm",
        "never below 0; where values are many zeros and a few large ones it holds the truth more often than Student's t "
        "as it stands, and where they lie close together it is the same; the bootstrap-t has no upper bound there",
    ),
    "score": ("Student's t of the mean's logit", "never below 0 or above 1, and else as of an amount"),
    "ratio": (
        "Student's t of the ratio's logarithm",
        "never below 0 and never without an upper bound, as Fieller's is; where the upper mean is many zeros and a few "
        "large values it holds the truth more often",
    ),
    "rate": ("Wilson's", "right in the mean over all rates; Clopper and Pearson's is wider than it need be"),
    "rate by instance": (
        "Wilson's, of the effective number",
        "outputs of one trial are alike: each taken by itself, they give intervals that are far too narrow",
    ),
    "difference of rates": ("Bonett and Price's", "keeps its level at every N, also where pairs mostly agree"),
    "break-even": (
        "expanded percentiles of resampled pairs",
        "a ratio of two differences, either of which may be none: its ends may lie at 0 or nowhere, as no formula's can",
    ),
}
"""Kind of number -> the method, and the reason."""
