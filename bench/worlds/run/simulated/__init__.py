"""What a simulated model knows about worlds, and the courses that it takes in them."""
