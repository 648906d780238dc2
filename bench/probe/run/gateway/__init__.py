"""The gateway between an agent and its tools, services and model. It forwards bytes, records
each call in a journal, and injects a fault into the call that the probe has chosen."""
