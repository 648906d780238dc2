"""An edit of the paper-sized variant: it names no file, since each line stands in one file alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .edits import Unfit, apply_edits, places
from .schemas import Edit, Part, Text

CODE = ("pipeline.py", "validator.py")


class LineEdit(Part):
    find: Text
    replace: str


def apply_line_edits(documents: Mapping[str, str], edits: Iterable[LineEdit]) -> dict[str, str] | Unfit:
    """The code among the documents with the edits made, or the reason against the first edit that does not fit."""
    code = {name: documents[name] for name in CODE}
    return apply_edits(code, [_in_its_file(code, edit) for edit in edits])


def _in_its_file(code: Mapping[str, str], edit: LineEdit) -> Edit:
    """The edit with the file that its line stands in; the first file for a line that stands in none."""
    file = next((name for name in CODE if places(code[name], edit.find)), CODE[0])
    return Edit.model_validate({"file": file, "find": edit.find, "replace": edit.replace})
