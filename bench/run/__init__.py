"""What makes a record: packs, architectures, models and faults, the trial, and the experiment that runs trials."""
