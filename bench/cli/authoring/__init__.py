"""What authors use: how to begin a pack or a package of parts, to make a pack of a table or a trace, and to check a pack."""
