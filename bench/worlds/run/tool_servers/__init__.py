"""The server of a world's tools for an agent in a separate process: over HTTP, and as an MCP server.

Nothing in its answers shows the agent that this is a test.
"""
