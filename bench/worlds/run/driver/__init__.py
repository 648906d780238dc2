"""The driver of an agent that is a command. It starts the command, kills it as planned and starts it again the same way."""
