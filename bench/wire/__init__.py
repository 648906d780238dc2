"""Code about processes and network protocols that the rooms above share: processes of agents, access to endpoints, and the
removal of keys from texts."""
