"""The size and the structure of the package: statements, code lines, files, rooms, arrows between rooms, and how many
definitions three trips through the code run."""
