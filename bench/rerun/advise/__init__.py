"""Advice on which pattern to build, from measurements: `bench advise WORKLOAD.toml`."""
