"""Tables: the tables and figures of every report, and the computations that only they need."""
