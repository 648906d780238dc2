"""Pages on the runs in a folder: an index of all runs with rankings, and a page of one run while it goes on."""
