"""Settings that are made before a framework is imported."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path


def keep_quiet() -> None:
    """Keep the frameworks off the network, the home folder and the terminal; a user's settings stay."""
    quiet = {
        "AUTOGEN_DISABLE_RUNTIME_TRACING": "true",
        "DSPY_CACHEDIR": str(Path(tempfile.gettempdir()) / "dspy_cache"),
        "LANGCHAIN_TRACING_V2": "false",
        "LANGSMITH_TRACING": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "MELLEA_LOGS_ENABLED": "false",
        "MELLEA_LOGS_LEVEL": "ERROR",
    }
    for variable, value in quiet.items():
        os.environ.setdefault(variable, value)
    # Without a handler Python prints a logger's errors itself: AutoGen's traceback of each agent, for one call that failed.
    logging.getLogger("autogen_core").addHandler(logging.NullHandler())
