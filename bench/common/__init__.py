"""Code that every room uses: errors, bounds, digests, files, names of folders, and the registry of parts."""
