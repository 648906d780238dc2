"""Advice on which pattern to build, from measurements: `bench more advise WORKLOAD.toml`."""
