"""What an architecture can call on its workbench, with signatures, as a Markdown table."""

from __future__ import annotations

import inspect
import re

from bench.run.trial.workbench import Workbench


def page() -> str:
    return table(Workbench)


def table(*classes: type) -> str:
    """Return a table of the calls that these classes themselves define."""
    rows = [
        f"| `{_signature(name, member)}` | {_first_sentence(member)} |"
        for of in classes
        for name, member in vars(of).items()
        if not name.startswith("_") and inspect.getdoc(member)
    ]
    return "\n".join(("| call | what it does |", "| --- | --- |", *rows))


def _signature(name: str, member: object) -> str:
    if isinstance(member, property):
        return name
    function = inspect.unwrap(member)  # type: ignore[arg-type]  # a method
    signature = str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()").replace("'", "")
    awaited = "await " if inspect.iscoroutinefunction(function) else ""
    signature = re.sub(r"<function (\w+) at [^>]*>", r"\1", re.sub(r"bench[.a-z_]*[.]", "", signature))
    return f"{awaited}{name}{signature}".replace("|", "\\|")


def _first_sentence(member: object) -> str:
    text = " ".join((inspect.getdoc(member) or "").split())
    return re.split(r"(?<=[.])\s", text, maxsplit=1)[0].replace("|", "\\|")
