"""The studies: for each question beyond the paper one file, with its analysis and its view; `registry` has their names."""
