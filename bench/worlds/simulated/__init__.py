"""What a simulated model knows of worlds, and the courses that it takes in them."""
