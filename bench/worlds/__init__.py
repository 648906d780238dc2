"""The wing of worlds: environments that an agent acts in, how it acts, the patterns that do, and what is shown of it."""
