"""The sentences that tell a model what happened to its last answer."""

REJECTED = "# Your last answer was rejected"
NOT_ACCEPTED = "it was not accepted"
"""The reason that is given if the model is told no reason."""
COMPLETED = "# Your last answer\nStatus: completed"
"""A rejection that is reported as success, as an SDK reported rejected tool calls."""
