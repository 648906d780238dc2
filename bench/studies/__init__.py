"""Studies: one file for each question beyond the paper, with its analysis and its tables and figures, registered in
`entries.py`."""
