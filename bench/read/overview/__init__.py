"""What is shown of the runs in a folder: all of them with rankings, and one while it goes on."""
