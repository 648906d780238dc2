"""The driver: an architecture that is a command. It is started, killed as planned, and started again the same way."""
