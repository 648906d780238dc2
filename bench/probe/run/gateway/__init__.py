"""The gateway between an agent and its tools, services and model. It relays bytes and keeps a journal; it strikes when told."""
