"""What a record holds of a world: its events, its journal, its damage, and whether they add up."""
