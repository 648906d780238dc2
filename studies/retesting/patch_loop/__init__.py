"""An agent that repairs a repository patch by patch, and what it believes about its tests in between."""
