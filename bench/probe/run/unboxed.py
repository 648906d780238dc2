"""How an agent without a box gets its copies: they stand at other paths, which its command, its configs and variables tell it.

Nobody sees whether it listens, so code that has the name of a store or of a config, and hears of no copy, is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from bench.probe.run.agent_code import StartedProgram, code_in, code_text, reads_arguments
from bench.probe.run.gateway.copied_paths import replacement, with_copy
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.witness.kinds import StoreSettings, is_address

CALLS = r"(?:open|Path|connect|join|listdir|scandir|mkdir\w*|read\w*|write\w*|glob)"


@dataclass(frozen=True)
class Copied:
    """A config or a store of which the agent gets a copy.

    store      the store's name; "" for a config, which is the agent's alone, and is handed over in no variable of its owner's
    path       where the owner's own is
    put        puts the path of the copy into a text, where the owner's stands
    variables  variables that hold the copy's path besides
    """

    store: str
    path: Path
    put: Callable[[str], str]
    variables: frozenset[str] = frozenset()

    def stands_in(self, text: str) -> bool:
        """Return whether a text holds its path."""
        return self.put(text) != text

    @cached_property
    def literal(self) -> re.Pattern[str]:
        """What stands in code that opens it by its name. A name without a dot is an everyday word."""
        name = re.escape(self.path.name)
        if "." in self.path.name:
            return re.compile(rf"""["'`](?:[^"'`\n]{{0,200}}[/\\:])?{name}["'`?/#]""")
        return re.compile(rf"""["'`](?:\./)?{name}/|\b{CALLS}\(\s*[rf]?["'`](?:\./)?{name}["'`]""")


def copies_of(subject: Subject, stores: Sequence[StoreSettings]) -> Iterator[Copied]:
    """Yield each config and store of which the agent gets a copy under another path."""
    folder = subject.agent.folder
    for config in subject.configs:
        put: Callable[[str], str] = partial(with_copy, config=config, folder=folder, copy=Path("\0"))
        yield Copied("", config.path, put, frozenset((config.variable,)) - {""})
    for store in stores:
        path = Path(store.where)
        if not is_address(store) and not folder.resolve().is_relative_to(path.resolve()):
            put = replacement(dict.fromkeys(map(str, (path, path.absolute(), path.resolve())), "\0"))
            yield Copied(store.name, path, put, frozenset(store.variables))


def unheard(programs: Sequence[StartedProgram], copied: Iterable[Copied]) -> Copied | None:
    """Return the first store whose copy no command and no variable tells; None if there is none."""
    texts = [text for each in programs for text in (*each.words, *each.variables.values())]
    silent = (each for each in copied if each.store and not each.variables and not any(map(each.stands_in, texts)))
    return next(silent, None)


def fixed_names(programs: Sequence[StartedProgram], copied: Sequence[Copied]) -> list[tuple[Path, Path]]:
    """Return the files of code in which the name of a config or store stands, although nothing hands its copy over to the
    program that the file belongs to; each with the path of that config or store. A file that no command names belongs to the
    agent.

    Args:
        programs: The commands, the agent's first.
        copied: The configs and stores.
    """
    agent = programs[0]
    folders = sorted({agent.folder.resolve(), *(file.parent for file in agent.files if file.is_file())})
    named = [file for program in programs for file in sorted(program.files)]
    texts = {
        file: text
        for file in dict.fromkeys((*(file for each in folders for file in code_in(each)), *named))
        if (text := code_text(file))
    }

    def is_handed(each: Copied, program: StartedProgram) -> bool:
        code = [texts[file] for file in program.files if file in texts]
        if any(map(each.stands_in, program.words)) and (not code or any(map(reads_arguments, code))):
            return True
        names = each.variables | {name for name, value in program.variables.items() if each.store and each.stands_in(value)}
        named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b") if names else None
        return named is not None and any(map(named.search, texts.values() if program is agent else code))

    places = []
    for each in copied:
        deaf = [program for program in (programs if each.store else (agent,)) if not is_handed(each, program)]
        for file, text in texts.items() if deaf else ():
            owners = [program for program in programs if file in program.files] or [agent]
            if any(owner in deaf for owner in owners) and each.literal.search(text):
                places.append((file, each.path))
    return places
