"""What is made of records: frames, statistics, verdicts on claims, reports, comparisons, exports. Nothing here runs a trial."""
