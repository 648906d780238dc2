"""What every room uses: errors, bounds, digests, files, names of folders, the registry of parts."""
