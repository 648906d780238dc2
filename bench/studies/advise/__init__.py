"""Advice on which pattern to build, by what was measured: `bench advise WORKLOAD.toml`."""
