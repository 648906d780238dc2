"""The copies of stores and configs for an agent that runs without a box: the copy's path replaces the original path in the
agent's command, configs and environment variables.

The probe cannot see whether the agent uses the copies. So it names each source file that contains the name of a store or config
although nothing hands the copy's path to this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from bench.probe.run.agent_code import StartedProgram, code_files, code_text, reads_arguments
from bench.probe.run.gateway.copied_paths import replacement, with_copy
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.witness.kinds import StoreSettings, is_address

FILE_CALLS = r"(?:open|Path|connect|join|listdir|scandir|mkdir\w*|read\w*|write\w*|glob)"


@dataclass(frozen=True)
class CopiedPath:
    """The path of a config or store of which the agent gets a copy.

    store         the store's name; "" for a config
    path          the owner's path
    replace_path  replaces the owner's path in a text by the path of the copy
    variables     the variables that also hold the copy's path
    """

    store: str
    path: Path
    replace_path: Callable[[str], str]
    variables: frozenset[str] = frozenset()

    def occurs_in(self, text: str) -> bool:
        """Return whether a text contains the path."""
        return self.replace_path(text) != text

    @cached_property
    def literal(self) -> re.Pattern[str]:
        """Matches code that contains the name of the path as a literal. A name without a dot must be part of a call or of a
        path, since it can be an everyday word."""
        name = re.escape(self.path.name)
        if "." in self.path.name:
            return re.compile(rf"""["'`](?:[^"'`\n]{{0,200}}[/\\:])?{name}["'`?/#]""")
        return re.compile(rf"""["'`](?:\./)?{name}/|\b{FILE_CALLS}\(\s*[rf]?["'`](?:\./)?{name}["'`]""")


def copied_paths(subject: Subject, stores: Sequence[StoreSettings]) -> Iterator[CopiedPath]:
    """Yield the path of each config and store of which the agent gets a copy under another path."""
    folder = subject.agent.folder
    for config in subject.configs:
        replace_path: Callable[[str], str] = partial(with_copy, config=config, folder=folder, copy=Path("\0"))
        yield CopiedPath("", config.path, replace_path, frozenset((config.variable,)) - {""})
    for store in stores:
        path = Path(store.where)
        if not is_address(store) and not folder.resolve().is_relative_to(path.resolve()):
            replace_path = replacement(dict.fromkeys(map(str, (path, path.absolute(), path.resolve())), "\0"))
            yield CopiedPath(store.name, path, replace_path, frozenset(store.variables))


def first_unnamed(programs: Sequence[StartedProgram], copied: Iterable[CopiedPath]) -> CopiedPath | None:
    """Return the first store whose copy no command and no variable names; None if there is none."""
    texts = [text for program in programs for text in (*program.words, *program.variables.values())]
    stores = (path for path in copied if path.store and not path.variables)
    return next((store for store in stores if not any(map(store.occurs_in, texts))), None)


def files_with_fixed_names(programs: Sequence[StartedProgram], copied: Sequence[CopiedPath]) -> list[tuple[Path, Path]]:
    """Return the code files that contain the name of a config or store although the path of the copy is not handed over to
    their program, each with the owner's path. A file that no command names belongs to the agent.

    Args:
        programs: The commands, the agent's first.
        copied: The configs and stores.
    """
    agent = programs[0]
    folders = sorted({agent.folder.resolve(), *(file.parent for file in agent.files if file.is_file())})
    files = [file for folder in folders for file in code_files(folder)]
    files += [file for program in programs for file in sorted(program.files)]
    texts = {file: text for file in dict.fromkeys(files) if (text := code_text(file))}

    def is_handed(copied_path: CopiedPath, program: StartedProgram) -> bool:
        """Return whether a program gets the path of the copy in its command or in a variable, and its code reads it."""
        code = [texts[file] for file in program.files if file in texts]
        if any(map(copied_path.occurs_in, program.words)) and (not code or any(map(reads_arguments, code))):
            return True
        variables = program.variables.items() if copied_path.store else ()
        names = copied_path.variables | {name for name, value in variables if copied_path.occurs_in(value)}
        name_pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
        return bool(names) and any(map(name_pattern.search, texts.values() if program is agent else code))

    literals = []
    for copied_path in copied:
        receivers = programs if copied_path.store else (agent,)
        uninformed = [program for program in receivers if not is_handed(copied_path, program)]
        for file, text in texts.items() if uninformed else ():
            owners = [program for program in programs if file in program.files] or [agent]
            if any(owner in uninformed for owner in owners) and copied_path.literal.search(text):
                literals.append((file, copied_path.path))
    return literals
