"""The tables of a `probe.toml` that one watched run shows: each line says what was seen."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench.common.wording import plural
from bench.probe.run.addresses import host_of, is_here
from bench.probe.run.agent_code import CODE, code_in, code_text
from bench.probe.run.box.refusals import advice
from bench.probe.run.clean import ANSWERS, AT_END
from bench.probe.run.gateway.functions import FUNCTION
from bench.probe.run.gateway.replies import api_of
from bench.probe.run.init import AgentDraft, FileLine, FileTable, no_store, toml_of
from bench.probe.run.watch import LAYER, WatchedFile, WatchedRun
from bench.record.probe_events import GatewayCall

CACHES = frozenset((".cache", ".npm", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules", ".venv", "venv"))
"""Folders of what is loaded or made again."""
IN_HOME = frozenset((".local", ".config"))
"""Folders of a home in which a program has a folder of its own, one or two levels down."""
LOOKS = frozenset(
    ("get", "list", "read", "look", "lookup", "find", "search", "fetch", "show", "query", "view", "count", "status", "describe")
)
"""First and last words in the names of tools that look."""
WORDS = re.compile(r"[A-Za-z][a-z]*|[A-Z]+(?![a-z])")
SHOWN, MOST_REFUSED = 4, 10


@dataclass(frozen=True)
class _Store:
    """A store that was seen: its kind, where it is, why it counts, and tables that are not read."""

    kind: str
    path: Path
    why: str
    ignore: tuple[str, ...] = ()


def watched_tables(draft: AgentDraft, run: WatchedRun) -> Iterator[FileTable]:
    """Yield the tables of a file on an agent that was watched.

    Args:
        draft: What was known before.
        run: What was seen.
    """
    stores, notes = _stores(draft, run.files)
    acted = _tools_that_acted(draft, run, stores)
    yield FileTable("", [*_top(draft, run, acted, stores), *notes])
    rows = {row.store for reading in run.course.readings for row in reading.changed} - {LAYER}
    for store in sorted(stores, key=lambda store: store.kind == "memory"):
        lines = [FileLine(f"{store.kind} = {toml_of(draft.path_shown(store.path))}", store.why)]
        if store.ignore:
            lines.append(FileLine(f"ignore = {json.dumps(store.ignore)}", "the framework's own tables"))
        yield FileTable("[[store]]", lines)
    for name in draft.servers:
        yield draft.database(name, "its rows changed" if name in rows else "none of its rows changed in the one run")
    if not stores and not draft.servers:
        yield no_store("the one run changed no file that was there before")
    yield from _doors(draft, run)


def _top(draft: AgentDraft, run: WatchedRun, acted: dict[str, bool | None], stores: Sequence[_Store]) -> Iterator[FileLine]:
    """Yield the lines that stand before the tables."""
    yield FileLine(draft.agent.written, draft.agent.why.partition(";")[0] if run.is_whole else draft.agent.why)
    text = run.course.texts.get(run.course.printed or "", "")
    if AT_END.search(text):
        yield FileLine(f"# {ANSWERS.partition(' in ')[0]}", "it came to the end of its standard input, which is empty")
    executed = Counter(call.tool for call in run.course.calls if call.door == FUNCTION)
    servers = [server.name for server in draft.config.servers] if draft.config else []
    calls = Counter(call.door for call in run.course.calls if call.door in servers)
    used = [name for name in servers if calls[name] or name in run.servers]
    if draft.config and not used:
        yield FileLine(
            f"# mcp = {toml_of(draft.path_shown(draft.config.path))}", "none of its servers was started in the one run"
        )
    elif draft.config:
        counts = ", ".join(f"{name} got {plural(calls[name], 'call')}" for name in used)
        yield draft.config_line(f"{counts}; the agent gets a rewritten copy, this file stays as it is")
    for program in dict.fromkeys(map(_program, run.seen.get("served", ()))):
        what = f"it started {program} itself, with MCP's client: let it read its servers from a file, and name that"
        yield FileLine('# mcp = "FILE"', what)
    yield from _functions(draft, run, executed, bool(used) or bool(_services(draft, run)), stores)
    looks = [tool for tool, changed in acted.items() if changed is False and _looks(tool)]
    if looks:
        yield FileLine(f"reads = {json.dumps(looks, ensure_ascii=False)}", "seen in one run: they changed no store")
    others = [tool for tool, changed in acted.items() if changed is False and tool not in looks]
    if others:
        what = "seen in one run: they changed no store; uncomment what only looks, and does nothing elsewhere either"
        yield FileLine(f"# reads = {json.dumps(others, ensure_ascii=False)}", what)


def _functions(
    draft: AgentDraft, run: WatchedRun, executed: Counter[str], has_doors: bool, stores: Sequence[_Store]
) -> Iterator[FileLine]:
    """Yield the line on tools in the agent's own process."""
    adapted = _served_tools(run)
    loaded = ", ".join(run.seen.get("framework", ()))
    if tools := [tool for tool in executed if tool not in adapted]:
        what = f"{loaded} executed {', '.join(tools)} in its own process"
        yield FileLine("functions = []", what) if has_doors else FileLine("# functions = []", f"{what}: no line is needed")
    elif named := list(_functions_of(draft, _offered_tools(run) - adapted)):
        what = f"its model is offered {', '.join(each.partition(':')[2] for each in named)}, which its code defines"
        yield FileLine(f"functions = {json.dumps(named)}", what)
    elif not has_doors:
        yield from _acting(run, stores)


def _acting(run: WatchedRun, stores: Sequence[_Store]) -> Iterator[FileLine]:
    """Yield the line on the agent's own functions during which a store changed."""
    acting = dict[str, None]()
    for message in run.seen.get("acted", ()):
        match _json_of(message):
            case [str(function), str(path)]:
                pass
            case _:  # any process in the box can tell the door something
                continue
        if any(store.kind != "memory" and Path(path).is_relative_to(store.path) for store in stores):
            acting[function] = None
    functions = [name for name in acting if "<" not in name]
    if functions:
        yield FileLine(f"functions = {json.dumps(functions, ensure_ascii=False)}", "a store changed while they ran")
    if len(functions) < len(acting):
        what = "a store changed while no function ran that can be named: put what acts into functions, and name these"
        yield FileLine('# functions = ["MODULE:FUNCTION"]', what)
    elif not functions:
        yield FileLine('# functions = ["MODULE:FUNCTION"]', "no tool of a known framework was executed: name what acts")


def _served_tools(run: WatchedRun) -> set[str]:
    """Return the names of the tools that a server or a service does: of MCP servers, and of functions that made such a call."""
    served = [call for call in run.course.calls if call.door_kind not in ("model", "function") and not api_of(call.tool)]
    callers = [call for call in run.course.calls if call.door == FUNCTION]
    made = {each.tool for each in callers if any(each.arrived <= call.arrived <= (each.answered or 0) for call in served)}
    return made | {call.tool for call in served if call.door_kind != "http"}


def _offered_tools(run: WatchedRun) -> set[str]:
    """Return the names of the tools that requests offer to the model."""
    names = set[str]()
    for call in run.course.calls:
        if api_of(call.tool):
            asked = _json_of(run.course.texts.get(call.arguments, ""))
            body = asked.get("body") if isinstance(asked, dict) else None
            tools = body.get("tools") if isinstance(body, dict) else None
            for tool in tools if isinstance(tools, list) else ():
                inner = tool.get("function", tool) if isinstance(tool, dict) else {}
                names.add(str(inner.get("name")) if isinstance(inner, dict) else "")
    return names


def _functions_of(draft: AgentDraft, names: Iterable[str]) -> Iterator[str]:
    """Yield `MODULE:FUNCTION` of each name that one module of the agent's folder alone defines at its top."""
    files = [path for path in code_in(draft.folder) if path.suffix == ".py"]
    texts = {path: code_text(path) for path in files}
    for name in sorted(filter(str.isidentifier, names)):
        defined = re.compile(rf"^(?:async )?def {name}\(", re.MULTILINE)
        places = [path for path, text in texts.items() if defined.search(text)]
        if len(places) == 1:
            parts = places[0].relative_to(draft.folder).with_suffix("").parts
            yield f"{'.'.join(parts[:-1] if parts[-1] == '__init__' else parts)}:{name}"


def _tools_that_acted(draft: AgentDraft, run: WatchedRun, stores: Sequence[_Store]) -> dict[str, bool | None]:
    """Return for each tool whether a store changed in the time of its calls; None if it says itself that it reads."""
    paths = [store.path for store in stores if store.kind != "memory"]
    files = {file.path for file in run.files if any(file.path.is_relative_to(path) for path in paths)}
    acted, adapted = dict[str, bool | None](), _served_tools(run)
    for call, changed in run.acting(files):
        if not (call.door in draft.addresses and api_of(call.tool)) and not (call.door == FUNCTION and call.tool in adapted):
            tool = f"{_service_name(call.door) if call.door in draft.addresses else call.door}.{call.tool}"
            known = acted.get(tool)
            acted[tool] = True if changed or known else None if call.reads else False
    return acted


def _looks(tool: str) -> bool:
    """Return whether the name of a tool says that it looks."""
    words = [word.lower() for word in WORDS.findall(tool.rpartition(".")[2])]
    return bool(words) and not LOOKS.isdisjoint((words[0], words[-1]))


def _stores(draft: AgentDraft, files: Sequence[WatchedFile]) -> tuple[list[_Store], list[FileLine]]:
    """Return the stores among what was written, and lines on what is none."""
    stores, notes, rest, left = list[_Store](), list[FileLine](), list[WatchedFile](), list[str]()
    for file in files:
        if not CACHES.isdisjoint(file.path.parts) or file.path.suffix == ".log":
            left.append(draft.path_shown(file.path))
        elif file.form.whose and not file.form.others:
            many = not file.form.is_database and not file.was and file.path.parent != draft.folder.resolve()
            place = file.path.parent if many else file.path
            if not any(place == store.path for store in stores):
                stores.append(_Store("memory", place, f"{file.form.whose}: reset before each run, and never compared"))
        elif file.form.is_database and file.was:
            stores.append(_Store("sqlite", file.path, "it changed; its rows are compared", file.form.tables))
        elif file.form.is_database:
            what = "the agent makes this database itself: make it before the probe, and uncomment this"
            notes.append(FileLine(f"# [[store]] sqlite = {toml_of(draft.path_shown(file.path))}", what))
        else:
            rest.append(file)
    groups = defaultdict[Path, list[WatchedFile]](list)
    for file in rest:
        groups[_group_folder(draft, file.path)].append(file)
    for group in groups.values():
        made, missed = _stores_of_group(draft, group, [store.path for store in stores])
        stores += made
        notes += missed
    if left:
        notes.append(FileLine(f"# {_some(left)}", "written too: caches and logs, which nobody compares"))
    unchanged = [place for place in draft.databases if (draft.folder / place).resolve() not in {f.path for f in files}]
    notes += [FileLine(f"# [[store]] sqlite = {toml_of(place)}", "it did not change in the one run") for place in unchanged]
    return stores, notes


def _group_folder(draft: AgentDraft, path: Path) -> Path:
    """Return the path under which a file is grouped. In a repository of git it is the folder that holds `.git`. Below the
    agent's folder or home it is the entry there, two levels deeper in IN_HOME. Elsewhere it is the file's folder."""
    if ".git" in path.parts:
        return Path(*path.parts[: path.parts.index(".git")])
    for base in (draft.folder.resolve(), draft.home.resolve()):
        if path.is_relative_to(base):
            parts = path.relative_to(base).parts
            return Path(base, *parts[: 3 if parts[0] in IN_HOME else 1])
    return path.parent


def _stores_of_group(
    draft: AgentDraft, group: Sequence[WatchedFile], known: Sequence[Path]
) -> tuple[list[_Store], list[FileLine]]:
    """Return the stores that files of one folder make up: a file alone, or the folder that holds them and was there before."""
    at = _group_folder(draft, group[0].path)
    base = at if ".git" in group[0].path.parts else Path(os.path.commonpath([file.path.parent for file in group]))
    while not base.is_dir():
        base = base.parent
    alone = len(group) == 1 or any(path.is_relative_to(base) for path in known)
    if alone and all(file.was and file.is_now for file in group):
        return [_Store("file", file.path, "it changed; its lines or values are compared") for file in group], []
    if not base.is_relative_to(at) or any(path.is_relative_to(base) for path in known):
        names = ", ".join(draft.path_shown(file.path) for file in group[:SHOWN])
        what = "made or removed in a folder that holds more than data: let the agent write into one of its own, and name that"
        return [], [FileLine(f"# [[store]] folder = {toml_of('FOLDER')}", f"{names}: {what}")]
    return [_Store("folder", base, f"{plural(len(group), 'file')} in it changed; its files are compared")], []


def _services(draft: AgentDraft, run: WatchedRun) -> dict[str, list[GatewayCall]]:
    """Return the calls of each service, by the variable of its address."""
    calls = defaultdict[str, list[GatewayCall]](list)
    for call in run.course.calls:
        if call.door in draft.addresses and not api_of(call.tool):
            calls[call.door].append(call)
    return {name: made for name, made in calls.items() if name not in {model for model, _ in _models(draft, run)}}


def _models(draft: AgentDraft, run: WatchedRun) -> dict[tuple[str, str], int]:
    """Return how often a model was asked, by the variable of its address and the end of the path."""
    asked = ((call.door, api.path) for call in run.course.calls if (api := api_of(call.tool)) and call.door in draft.addresses)
    return dict(Counter(asked).most_common())


def _doors(draft: AgentDraft, run: WatchedRun) -> Iterator[FileTable]:
    """Yield the tables of services and of the model, and what was reached besides."""
    for name, calls in _services(draft, run).items():
        host = host_of(draft.addresses[name])
        here = "" if is_here(host) else "# "
        real = "it runs already, so each call is real, and nothing resets it: give its `command`, and url with {port}"
        if here:
            real = f"it is not on this machine: uncomment it, and write remote = {json.dumps([host])}, if each cell may call it"
        tools = ", ".join(dict.fromkeys(call.tool for call in calls[:SHOWN]))
        url = draft.url(name, real)
        lines = [FileLine(f"{here}name = {toml_of(_service_name(name))}", f"{plural(len(calls), 'call')}, such as {tools}")]
        lines.append(FileLine(f"{here}variable = {toml_of(name)}", "where the agent finds its address"))
        yield FileTable("[[service]]", [*lines, FileLine(f"{here}{url.written}", url.why)])
    for (name, path), times in list(_models(draft, run).items())[:1]:
        dialect = {"/responses": "responses", "/messages": "anthropic"}.get(path, "chat")
        asked = f"{plural(times, 'request')} to {path} at {host_of(draft.addresses[name])}"
        yield draft.model(name, f"{asked}; leave the table out for no model", dialect)
    for place in run.course.refused[:MOST_REFUSED]:
        name, _, port = place.rpartition(":")
        what = f"it was refused in the box; {advice(name.strip('[]'), int(port))}"
        yield FileTable("", [FileLine(f"# {toml_of(place)}", what)])


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(map(toml_of, names[:SHOWN]))}{more}"


def _program(command: str) -> str:
    """Return the program of a command, and the script that it runs. Further words can hold a key."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "a program"
    scripts = (word for word in words[1:] if Path(word).suffix in CODE and re.fullmatch(r"[\w./-]+", word))
    return shlex.join([*words[:1], *islice(scripts, 1)])


def _service_name(variable: str) -> str:
    """Return the name of a service from that of its variable."""
    return re.sub(r"_(?:BASE_)?(?:URL|URI|ADDRESS|ENDPOINT|HOST)$", "", variable).lower() or variable.lower()


def _json_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
