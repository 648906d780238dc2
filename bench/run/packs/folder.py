"""A pack's folder and its files, read for one variant and one instance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common.errors import PackError
from bench.common.files import text_of
from bench.common.numbers import finite, no_number
from bench.scenario import Baseline, Grader, Json, Scenario, Subtask, Task, TaskEnvironment, WrongAnswer

SYSTEM_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""Files that an operating system leaves in folders."""
MAX_BYTES = 2**26
"""The largest file that is read, in bytes."""


@dataclass(frozen=True)
class PackFolder:
    """A pack's folder, read for one variant and one instance. Raises PackError, which names the file, for anything unreadable.

    others   the names of the pack's other variants and instances, whose files do not count here
    """

    path: Path
    variant: str
    instance: str = ""
    others: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.path.name

    def part(self, name: str) -> Path:
        """Return the first of these folders that exists: `<name>/<variant>/<instance>`, `<name>/<instance>`,
        `<name>/<variant>`, `<name>`."""
        root = self.path / name
        folders = [root / self.variant / self.instance, root / self.instance] if self.instance else []
        chosen = next((folder for folder in (*folders, root / self.variant) if folder.is_dir()), root)
        foreign = sorted(other for other in self.others if (chosen / other).is_dir())
        if foreign:
            mine = self.instance or self.variant
            raise PackError(f"{chosen}: has a folder for '{foreign[0]}' and none for '{mine}'; add {chosen / mine}")
        return chosen

    def documents(self) -> dict[str, str]:
        """Return the documents' texts by name, sorted by name. A document in a subfolder is named with a slash."""
        root = self.part("documents")
        files = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {path.relative_to(root).as_posix(): _text(path) for path in files}

    def prompt(self, name: str) -> str:
        """Return the text of `prompts/<name>.md`. Raises PackError if it is empty."""
        path = self.path / "prompts" / f"{name}.md"
        text = _text(path).strip()
        if not text:
            raise PackError(f"{path}: is empty; write there what is asked")
        return text

    def reference(self) -> dict[str, Json]:
        """Return the reference answer: the right output by subtask."""
        path = self.part("reference") / "answer.json"
        answer = _json(path)
        if not isinstance(answer, dict):
            raise PackError(f"{path}: must be an object with one output per subtask")
        return answer

    def wrong(self) -> tuple[WrongAnswer, ...]:
        """Return the wrong answers in `reference/wrong/`."""
        answers = {path: _json(path) for path in sorted((self.part("reference") / "wrong").glob("*.json"))}
        for path, value in answers.items():
            if not (isinstance(value, dict) and isinstance(value.get("why"), str) and isinstance(value.get("outputs"), dict)):
                raise PackError(f'{path}: must be an object with "why" (a text) and "outputs" (an object)')
        return tuple(WrongAnswer(path.stem, value["why"], value["outputs"]) for path, value in answers.items())

    @property
    def truth(self) -> Path:
        return self.part("reference") / "truth"

    def scenario(
        self,
        subtasks: Sequence[Subtask],
        *,
        grade: Grader,
        baseline: Baseline,
        secrets: Sequence[str] = (),
        answer: Sequence[str] = (),
        documents: Mapping[str, str] | None = None,
        reference: Mapping[str, Json] | None = None,
        wrong: Sequence[WrongAnswer] | None = None,
        truth: Any = None,
        made_by: Callable[..., Any] | None = None,
        environment: TaskEnvironment | None = None,
    ) -> Scenario:
        """Make the scenario from the definitions in `scenario.py` and the files in the folder.

        answer     the subtasks whose outputs are graded; () stands for all
        documents, reference, wrong, truth   replace the files, if a pack makes them in code
        made_by    the function of the pack that made the values above
        environment   the task's environment, such as a world that tools act on
        """
        for field, names in (("secrets", secrets), ("answer", answer)):
            if isinstance(names, str):
                raise PackError(f'{self.path / "scenario.py"}: {field} is a text; write {field}=("{names}",), with a comma')
        if not all(isinstance(answer, WrongAnswer) for answer in wrong or ()):
            raise PackError(
                f"{self.path / 'scenario.py'}: wrong must be a sequence of bench.scenario.WrongAnswer(name, why, outputs)"
            )
        texts = self.documents() if documents is None else documents
        return Scenario(
            name=self.name,
            variant=self.variant,
            task=Task(self.name, self.prompt("role"), dict(texts), tuple(subtasks), tuple(answer)),
            grade=grade,
            truth=self.truth if truth is None else truth,
            reference=self.reference() if reference is None else reference,
            wrong=self.wrong() if wrong is None else tuple(wrong),
            baseline=baseline,
            secrets=tuple(secrets),
            instance=self.instance,
            made_by=made_by,
            environment=environment,
        )


def _text(path: Path) -> str:
    """Return the text of a UTF-8 file, without its byte order mark."""
    try:
        text = text_of(path, MAX_BYTES)
    except OSError as error:
        raise PackError(f"{path}: cannot be read: {error}") from error
    except ValueError:
        text = None
    if text is None or path.name in SYSTEM_FILES:
        raise PackError(f"{path}: is not UTF-8 text, and a model can read nothing else; save it as UTF-8, or remove it")
    return text


def _json(path: Path) -> Json:
    """Return the value in a JSON file. Raises PackError for anything that is no strict JSON."""
    try:
        value = json.loads(_text(path), parse_constant=no_number, parse_float=finite)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair could not be sent to a model
    except (ValueError, RecursionError) as error:
        raise PackError(f"{path}: is not JSON: {' '.join(str(error).split())}") from error
    return value
