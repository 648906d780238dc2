"""What is made of the records of trials in worlds: steps, damage, tables, the scorecard."""
