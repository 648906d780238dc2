"""The owner's stores: copies of them, their reset, and witnesses that read them as rows."""
