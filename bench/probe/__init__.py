"""A user's own agent, its tools and its data: where it does damage when a call fails."""
