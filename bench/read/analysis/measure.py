"""The kinds of measured values. They are apart from the statistics, which import scipy, so that reading a run does not wait
for scipy."""

from typing import Literal

Measure = Literal["spent", "retry", "first_round", "price", "score", "effect"]
"""What values measure, if it changes how well an interval holds: all that a trial spent, its retry tokens, the first round
after a fault, the price of a fault, the grader's score, or an effect over instances."""
