"""The entry of a format in which others publish trials. The entries of this suite stand beside their functions, and another
package declares its formats in the group `recovery_bench.formats` of its entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from bench.common.errors import ResultsError
from bench.common.registry import Part, Registry, Unusable, foreign_code
from bench.elsewhere.trials import RecordedRun


@dataclass(frozen=True)
class RecordedFormat(Part):
    """A format of trials.

    members   the JSON members by which the format is recognized
    type      the pydantic type of the file
    run       the function that returns the trials of a file: (file name for messages, validated value) -> trials
    each      whether the file is a list of objects with these members, or has one object in each line
    """

    members: frozenset[str]
    type: TypeAdapter[Any]
    run: Callable[[str, Any], RecordedRun]
    each: bool = False

    def read_trials(self, file_name: str, value: Any) -> RecordedRun:
        """Return the trials of a file.

        Args:
            file_name: The file, for messages.
            value: Its JSON value.

        Returns:
            The trials.

        Raises:
            ValidationError: The value is not of the format's type.
            ResultsError: The trials contradict themselves, or the code of another package's format failed.
        """
        checked = self.type.validate_python(value)
        if not self.package:
            return self.run(file_name, checked)
        try:
            with foreign_code(self.home):
                return self.run(file_name, checked)
        except Unusable as error:
            if isinstance(error.__cause__, ResultsError):
                raise error.__cause__ from None
            raise ResultsError(f"{file_name}: is not read by the format '{self.name}' of {self.package}: {error}") from error


FORMATS = Registry("format of trials", RecordedFormat, plural="formats")
