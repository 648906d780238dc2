"""How a model is told what became of its last answer."""

REJECTED = "# Your last answer was rejected"
NOT_ACCEPTED = "it was not accepted"
"""The reason that gives none."""
COMPLETED = "# Your last answer\nStatus: completed"
"""A rejection that is reported as success, as an SDK reported rejected calls of tools."""
