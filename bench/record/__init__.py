"""The files of a run in `results/`: their types, and how they are written, read and verified. This room is the contract
between `bench.run` and `bench.read`."""
