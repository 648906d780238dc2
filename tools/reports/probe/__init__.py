"""`bench probe` on servers and agents that nobody here wrote."""
