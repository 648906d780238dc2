"""Makes the tables of a `probe.toml` from one watched run of the agent. The comment of each line says what was seen."""

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

from bench.common.addresses import host_of, is_this_machine
from bench.common.wording import plural
from bench.probe.run.agent_code import CODE_SUFFIXES, code_files, code_text
from bench.probe.run.box.refusals import advice
from bench.probe.run.clean import ANSWERS_SETTING, END_OF_INPUT
from bench.probe.run.gateway.functions import FUNCTION_DOOR
from bench.probe.run.gateway.replies import api_of
from bench.probe.run.init import AgentDraft, FileLine, FileTable, store_placeholder, toml_of
from bench.probe.run.watch import BOX_FILES, WatchedFile, WatchedRun
from bench.record.probe_events import GatewayCall

CACHE_FOLDERS = frozenset((".cache", ".npm", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules", ".venv", "venv"))
"""Folders whose content is loaded or made again, so no store."""
HOME_DATA_FOLDERS = frozenset((".local", ".config"))
"""Folders of a home in which each program has its own folder, one or two levels down."""
READING_WORDS = frozenset(
    ("get", "list", "read", "look", "lookup", "find", "search", "fetch", "show", "query", "view", "count", "status", "describe")
)
"""First and last words in the names of tools that only read."""
NAME_WORD = re.compile(r"[A-Za-z][a-z]*|[A-Z]+(?![a-z])")
MAX_SHOWN_NAMES, MAX_SHOWN_REFUSALS = 4, 10


@dataclass(frozen=True)
class _SeenStore:
    """A store that the watched run showed: its kind, its path, the reason why it is a store, and its tables to `ignore`."""

    kind: str
    path: Path
    why: str
    ignore: tuple[str, ...] = ()


def watched_tables(draft: AgentDraft, run: WatchedRun) -> Iterator[FileTable]:
    """Yield the tables of the `probe.toml` for an agent that was watched.

    Args:
        draft: What was known before the run.
        run: What the run showed.
    """
    stores, notes = _stores(draft, run.files)
    changed_by_tool = _changed_by_tool(draft, run, stores)
    yield FileTable("", [*_top_lines(draft, run, changed_by_tool, stores), *notes])
    changed_stores = {row.store for reading in run.agent_run.readings for row in reading.changed} - {BOX_FILES}
    for store in sorted(stores, key=lambda store: store.kind == "memory"):
        lines = [FileLine(f"{store.kind} = {toml_of(draft.shown_path(store.path))}", store.why)]
        if store.ignore:
            lines.append(FileLine(f"ignore = {json.dumps(store.ignore)}", "the framework's own tables"))
        yield FileTable("[[store]]", lines)
    for name in draft.servers:
        yield draft.database(name, "its rows changed" if name in changed_stores else "none of its rows changed in the one run")
    if not stores and not draft.servers:
        yield store_placeholder("the one run changed no file that was there before")
    yield from _service_tables(draft, run)


def _top_lines(
    draft: AgentDraft, run: WatchedRun, changed_by_tool: dict[str, bool | None], stores: Sequence[_SeenStore]
) -> Iterator[FileLine]:
    """Yield the lines before the tables: the agent's command, its MCP config, its functions, and the tools that only read.

    Args:
        draft: What was known before the run.
        run: What the run showed.
        changed_by_tool: Tool -> whether a store changed during its calls; None if the tool says that it only reads.
        stores: The stores that the run showed.
    """
    yield FileLine(draft.agent.written, draft.agent.why.partition(";")[0] if run.is_whole else draft.agent.why)
    text = run.agent_run.texts.get(run.agent_run.printed or "", "")
    if END_OF_INPUT.search(text):
        yield FileLine(f"# {ANSWERS_SETTING.partition(' in ')[0]}", "it came to the end of its standard input, which is empty")
    executed = Counter(call.tool for call in run.agent_run.calls if call.door == FUNCTION_DOOR)
    servers = [server.name for server in draft.config.servers] if draft.config else []
    calls = Counter(call.door for call in run.agent_run.calls if call.door in servers)
    used_servers = [name for name in servers if calls[name] or name in run.servers]
    if draft.config and not used_servers:
        yield FileLine(
            f"# mcp = {toml_of(draft.shown_path(draft.config.path))}", "none of its servers was started in the one run"
        )
    elif draft.config:
        counts = ", ".join(f"{name} got {plural(calls[name], 'call')}" for name in used_servers)
        yield draft.config_line(f"{counts}; the agent gets a rewritten copy, this file stays as it is")
    for program in dict.fromkeys(map(_program_and_script, run.seen.get("served", ()))):
        advice = f"it started {program} itself, with MCP's client: let it read its servers from a file, and name that"
        yield FileLine('# mcp = "FILE"', advice)
    yield from _functions_line(draft, run, executed, bool(used_servers) or bool(_service_calls(draft, run)), stores)
    reading_tools = [tool for tool, changed in changed_by_tool.items() if changed is False and _has_reading_name(tool)]
    if reading_tools:
        yield FileLine(f"reads = {json.dumps(reading_tools, ensure_ascii=False)}", "seen in one run: they changed no store")
    unclear = [tool for tool, changed in changed_by_tool.items() if changed is False and tool not in reading_tools]
    if unclear:
        advice = "seen in one run: they changed no store; uncomment what only looks, and does nothing elsewhere either"
        yield FileLine(f"# reads = {json.dumps(unclear, ensure_ascii=False)}", advice)


def _functions_line(
    draft: AgentDraft, run: WatchedRun, executed: Counter[str], has_doors: bool, stores: Sequence[_SeenStore]
) -> Iterator[FileLine]:
    """Yield the probe file's line `functions`, about tools in the agent's own process. Tools that a known framework executed
    need no names in it.

    Args:
        draft: What was known before the run.
        run: What the run showed.
        executed: The number of calls of each tool that a known framework executed.
        has_doors: Whether calls also came through the door of an MCP server or service.
        stores: The stores that the run showed.
    """
    served_tools = _served_tools(run)
    frameworks = ", ".join(run.seen.get("framework", ()))
    if tools := [tool for tool in executed if tool not in served_tools]:
        observation = f"{frameworks} executed {', '.join(tools)} in its own process"
        if has_doors:
            yield FileLine("functions = []", observation)
        else:
            yield FileLine("# functions = []", f"{observation}: no line is needed")
    elif functions := list(_functions_of(draft, _offered_tools(run) - served_tools)):
        observation = f"its model is offered {', '.join(path.partition(':')[2] for path in functions)}, which its code defines"
        yield FileLine(f"functions = {json.dumps(functions)}", observation)
    elif not has_doors:
        yield from _acting_functions_line(run, stores)


def _acting_functions_line(run: WatchedRun, stores: Sequence[_SeenStore]) -> Iterator[FileLine]:
    """Yield the line `functions` with the agent's own functions during which a store changed. If some cannot be named, or if
    there are none, yield a comment that says so."""
    acting = dict[str, None]()
    for message in run.seen.get("acted", ()):
        match _json_of(message):
            case [str(function), str(path)]:
                pass
            case _:  # any process in the box can send a message
                continue
        if any(store.kind != "memory" and Path(path).is_relative_to(store.path) for store in stores):
            acting[function] = None
    functions = [name for name in acting if "<" not in name]  # `<lambda>` and `<locals>` cannot be named in the file
    if functions:
        yield FileLine(f"functions = {json.dumps(functions, ensure_ascii=False)}", "a store changed while they ran")
    if len(functions) < len(acting):
        advice = "a store changed while no function ran that can be named: put what acts into functions, and name these"
        yield FileLine('# functions = ["MODULE:FUNCTION"]', advice)
    elif not functions:
        yield FileLine('# functions = ["MODULE:FUNCTION"]', "no tool of a known framework was executed: name what acts")


def _served_tools(run: WatchedRun) -> set[str]:
    """Return the names of the tools of servers, and of functions that called a server or a service."""
    served = [call for call in run.agent_run.calls if call.door_kind not in ("model", "function") and not api_of(call.tool)]
    callers = [call for call in run.agent_run.calls if call.door == FUNCTION_DOOR]
    calling_functions = {
        caller.tool for caller in callers if any(caller.arrived <= call.arrived <= (caller.answered or 0) for call in served)
    }
    return calling_functions | {call.tool for call in served if call.door_kind != "http"}


def _offered_tools(run: WatchedRun) -> set[str]:
    """Return the names of the tools that requests offer to the model."""
    names = set[str]()
    for call in run.agent_run.calls:
        if api_of(call.tool):
            request = _json_of(run.agent_run.texts.get(call.arguments, ""))
            body = request.get("body") if isinstance(request, dict) else None
            tools = body.get("tools") if isinstance(body, dict) else None
            for tool in tools if isinstance(tools, list) else ():
                inner = tool.get("function", tool) if isinstance(tool, dict) else {}
                names.add(str(inner.get("name")) if isinstance(inner, dict) else "")
    return names


def _functions_of(draft: AgentDraft, names: Iterable[str]) -> Iterator[str]:
    """Yield `MODULE:FUNCTION` of each name that is defined at the top of exactly one module in the agent's folder."""
    files = [path for path in code_files(draft.folder) if path.suffix == ".py"]
    texts = {path: code_text(path) for path in files}
    for name in sorted(filter(str.isidentifier, names)):
        definition = re.compile(rf"^(?:async )?def {name}\(", re.MULTILINE)
        modules = [path for path, text in texts.items() if definition.search(text)]
        if len(modules) == 1:
            module_path = modules[0].parent if modules[0].name == "__init__.py" else modules[0].with_suffix("")
            yield f"{'.'.join(module_path.relative_to(draft.folder).parts)}:{name}"


def _changed_by_tool(draft: AgentDraft, run: WatchedRun, stores: Sequence[_SeenStore]) -> dict[str, bool | None]:
    """Return for each tool whether a store changed during its calls; None if the tool says that it only reads."""
    paths = [store.path for store in stores if store.kind != "memory"]
    files = {file.path for file in run.files if any(file.path.is_relative_to(path) for path in paths)}
    changed_by_tool, served_tools = dict[str, bool | None](), _served_tools(run)
    for call, changed in run.tool_calls_with_changes(files):
        is_service = call.door in draft.addresses
        # a request to a model is no tool, and of a function that calls a server or service the inner call counts
        if (is_service and api_of(call.tool)) or (call.door == FUNCTION_DOOR and call.tool in served_tools):
            continue
        tool = f"{_service_name(call.door) if is_service else call.door}.{call.tool}"
        if changed or changed_by_tool.get(tool):
            changed_by_tool[tool] = True
        else:
            changed_by_tool[tool] = None if call.reads else False
    return changed_by_tool


def _has_reading_name(tool: str) -> bool:
    """Return whether the first or the last word in the name of a tool says that it only reads."""
    words = [word.lower() for word in NAME_WORD.findall(tool.rpartition(".")[2])]
    return bool(words) and not READING_WORDS.isdisjoint((words[0], words[-1]))


def _stores(draft: AgentDraft, files: Sequence[WatchedFile]) -> tuple[list[_SeenStore], list[FileLine]]:
    """Return the stores among the written files, and comments about files that are no store."""
    stores, notes, rest, caches = list[_SeenStore](), list[FileLine](), list[WatchedFile](), list[str]()
    for file in files:
        if not CACHE_FOLDERS.isdisjoint(file.path.parts) or file.path.suffix == ".log":
            caches.append(draft.shown_path(file.path))
        elif file.form.owner and not file.form.others:
            # a new file outside the agent's folder is probably one of many, such as a session's: its folder is the memory
            is_one_of_many = not file.form.is_database and not file.was and file.path.parent != draft.folder.resolve()
            path = file.path.parent if is_one_of_many else file.path
            if not any(path == store.path for store in stores):
                stores.append(_SeenStore("memory", path, f"{file.form.owner}: reset before each run, and never compared"))
        elif file.form.is_database and file.was:
            stores.append(_SeenStore("sqlite", file.path, "it changed; its rows are compared", file.form.tables))
        elif file.form.is_database:
            advice = "the agent makes this database itself: make it before the probe, and uncomment this"
            notes.append(FileLine(f"# [[store]] sqlite = {toml_of(draft.shown_path(file.path))}", advice))
        else:
            rest.append(file)
    groups = defaultdict[Path, list[WatchedFile]](list)
    for file in rest:
        groups[_group_folder(draft, file.path)].append(file)
    for group in groups.values():
        group_stores, group_notes = _stores_of_group(draft, group, [store.path for store in stores])
        stores += group_stores
        notes += group_notes
    if caches:
        notes.append(FileLine(f"# {_first_names(caches)}", "written too: caches and logs, which nobody compares"))
    written = {file.path for file in files}
    unchanged = [path for path in draft.databases if (draft.folder / path).resolve() not in written]
    notes += [FileLine(f"# [[store]] sqlite = {toml_of(path)}", "it did not change in the one run") for path in unchanged]
    return stores, notes


def _group_folder(draft: AgentDraft, path: Path) -> Path:
    """Return the path by which a file is grouped: the folder that holds `.git`; in the agent's folder or home the entry of that
    folder, or an entry two levels deeper in `HOME_DATA_FOLDERS`; elsewhere the file's folder."""
    if ".git" in path.parts:
        return Path(*path.parts[: path.parts.index(".git")])
    for base in (draft.folder.resolve(), draft.home.resolve()):
        if path.is_relative_to(base):
            parts = path.relative_to(base).parts
            return Path(base, *parts[: 3 if parts[0] in HOME_DATA_FOLDERS else 1])
    return path.parent


def _stores_of_group(
    draft: AgentDraft, group: Sequence[WatchedFile], store_paths: Sequence[Path]
) -> tuple[list[_SeenStore], list[FileLine]]:
    """Return the stores that files of one group form, with comments: a single file, or the folder that holds the files and
    existed before. `store_paths` are the paths of other stores."""
    group_folder = _group_folder(draft, group[0].path)
    base = group_folder if ".git" in group[0].path.parts else Path(os.path.commonpath([file.path.parent for file in group]))
    while not base.is_dir():  # the agent made this folder, and only in the box
        base = base.parent
    is_single = len(group) == 1 or any(path.is_relative_to(base) for path in store_paths)
    if is_single and all(file.was and file.is_now for file in group):
        return [_SeenStore("file", file.path, "it changed; its lines or values are compared") for file in group], []
    if not base.is_relative_to(group_folder) or any(path.is_relative_to(base) for path in store_paths):
        names = ", ".join(draft.shown_path(file.path) for file in group[:MAX_SHOWN_NAMES])
        advice = "made or removed in a folder that holds more than data: let the agent write into one of its own, and name that"
        return [], [FileLine(f"# [[store]] folder = {toml_of('FOLDER')}", f"{names}: {advice}")]
    return [_SeenStore("folder", base, f"{plural(len(group), 'file')} in it changed; its files are compared")], []


def _service_calls(draft: AgentDraft, run: WatchedRun) -> dict[str, list[GatewayCall]]:
    """Return the calls of each service, by the variable of its address."""
    models = {variable for variable, _ in _model_requests(draft, run)}
    calls = defaultdict[str, list[GatewayCall]](list)
    for call in run.agent_run.calls:
        if call.door in draft.addresses and call.door not in models and not api_of(call.tool):
            calls[call.door].append(call)
    return calls


def _model_requests(draft: AgentDraft, run: WatchedRun) -> dict[tuple[str, str], int]:
    """Return the number of requests to a model, by the variable of its address and the end of the path, the most requests
    first."""
    requests = (
        (call.door, api.path) for call in run.agent_run.calls if (api := api_of(call.tool)) and call.door in draft.addresses
    )
    return dict(Counter(requests).most_common())


def _service_tables(draft: AgentDraft, run: WatchedRun) -> Iterator[FileTable]:
    """Yield the tables of services and of the model, and comments about refused connections."""
    for name, calls in _service_calls(draft, run).items():
        host = host_of(draft.addresses[name])
        comment_mark = "" if is_this_machine(host) else "# "
        warning = "it runs already, so each call is real, and nothing resets it: give its `command`, and url with {port}"
        if comment_mark:
            warning = (
                f"it is not on this machine: uncomment it, and write remote = {json.dumps([host])}, if each cell may call it"
            )
        tools = ", ".join(dict.fromkeys(call.tool for call in calls[:MAX_SHOWN_NAMES]))
        url = draft.url(name, warning)
        lines = [
            FileLine(f"{comment_mark}name = {toml_of(_service_name(name))}", f"{plural(len(calls), 'call')}, such as {tools}")
        ]
        lines.append(FileLine(f"{comment_mark}variable = {toml_of(name)}", "where the agent finds its address"))
        yield FileTable("[[service]]", [*lines, FileLine(f"{comment_mark}{url.written}", url.why)])
    for (name, path), times in list(_model_requests(draft, run).items())[:1]:
        dialect = {"/responses": "responses", "/messages": "anthropic"}.get(path, "chat")
        observation = f"{plural(times, 'request')} to {path} at {host_of(draft.addresses[name])}"
        yield draft.model(name, f"{observation}; leave the table out for no model", dialect)
    for address in run.agent_run.refused[:MAX_SHOWN_REFUSALS]:
        host, _, port = address.rpartition(":")
        note = f"it was refused in the box; {advice(host.strip('[]'), int(port))}"
        yield FileTable("", [FileLine(f"# {toml_of(address)}", note)])


def _first_names(names: Sequence[str]) -> str:
    """Return at most `MAX_SHOWN_NAMES` of these names as TOML strings, and how many more there are."""
    rest = f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""
    return f"{', '.join(map(toml_of, names[:MAX_SHOWN_NAMES]))}{rest}"


def _program_and_script(command: str) -> str:
    """Return the program of a command, and the script that it runs. Further words are left out, since they may contain a
    key."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "a program"
    scripts = (word for word in words[1:] if Path(word).suffix in CODE_SUFFIXES and re.fullmatch(r"[\w./-]+", word))
    return shlex.join([*words[:1], *islice(scripts, 1)])


def _service_name(variable: str) -> str:
    """Return the name of a service from the name of its variable."""
    return re.sub(r"_(?:BASE_)?(?:URL|URI|ADDRESS|ENDPOINT|HOST)$", "", variable).lower() or variable.lower()


def _json_of(text: str) -> object:
    """Return the value of a JSON text; None if the text is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
