"""An agent that repairs a repository patch by patch, and what it believes of its tests in between."""
