"""The commands, a module each, beside those of `bench.cli.main`."""
