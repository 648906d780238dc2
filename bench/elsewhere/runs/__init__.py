"""Single runs, read as steps: trajectories of ATIF, traces of OpenTelemetry's GenAI spans and of platforms, and sessions of
coding agents.

`reading` opens a file and picks the reader of its form. A reader adds calls of a model to a `RunBuilder` (`steps`), the common
form, and counts there what it leaves out. A further form is a further reader.
"""

from bench.elsewhere.runs.reading import read_log, read_trace
from bench.elsewhere.runs.steps import ImportedCall, ImportedRun, ImportedStep, key_of, step_name, summary_of, tool_names

__all__ = [
    "ImportedCall",
    "ImportedRun",
    "ImportedStep",
    "key_of",
    "read_log",
    "read_trace",
    "step_name",
    "summary_of",
    "tool_names",
]
