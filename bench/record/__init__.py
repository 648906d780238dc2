"""What a run leaves in `results/`, and how it is written, read and verified: the contract between `bench.run` and
`bench.read`."""
