"""What values are of. It stands apart from the statistics, which import scipy: who reads a run need not wait for that."""

from typing import Literal

Measure = Literal["spent", "retry", "first_round", "price", "score"]
"""What values are of, as far as it tells how well an interval holds: all that a trial spent; its retry tokens; the first round
after a fault; the price of a fault; the grader's score."""
