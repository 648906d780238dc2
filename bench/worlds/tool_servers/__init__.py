"""A world's door: its tools as an agent that is a process of its own finds them, over HTTP and as an MCP server.

Nothing that comes through it tells a test from life.
"""
