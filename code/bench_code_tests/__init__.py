"""A package, so that pytest does not name its modules after the folder `code`: Python has a module of that name."""
