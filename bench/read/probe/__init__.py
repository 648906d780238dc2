"""What a probe showed: from its records alone, as a page and as ten lines."""
