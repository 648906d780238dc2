"""What the records of a probe hold: calls at the gateway, rows of the owner's stores, points, verdicts."""
