"""The sentences that tell a model what happened to its last answer."""

REJECTED = "# Your last answer was rejected"
NOT_ACCEPTED = "it was not accepted"
"""The reason of a rejection without a reason."""
COMPLETED = "# Your last answer\nStatus: completed"
"""A rejection reported as success, as an SDK reported rejected tool calls."""
