"""The box: a probed agent runs where its folder and its home are copies, and all else is read-only, hidden or covered."""
