"""What a report and a terminal show of a trial in a world (`bench.read.report.surroundings.Showing`)."""

from bench.worlds.read.report.trace import DUMP, Worlds, texts_of_worlds

texts_of = texts_of_worlds
shows = Worlds


def is_shown_otherwise(text: str) -> bool:
    """Return whether a text is the SQL of a world. The page shows its content in the steps instead."""
    return text.startswith(DUMP)
