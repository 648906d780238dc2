"""Read a kubectl command, without ever running it. What is not known to be harmless is refused.

`parse` is the one door: the verifier and the grader both come through it, so that neither is laxer than the other.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Verb = tuple[str, ...]

CHANGING: frozenset[Verb] = frozenset(
    {("rollout", "undo"), ("rollout", "restart"), ("set", "image"), ("set", "resources"), ("scale",)}
)
READING: frozenset[Verb] = frozenset(
    {("rollout", "status"), ("rollout", "history"), ("get",), ("describe",), ("logs",), ("top",)}
)
KINDS = {
    alias: kind
    for kind, aliases in {
        "deployment": "deployment deployments deploy deployment.apps deployments.apps",
        "pod": "pod pods po",
        "event": "event events ev",
        "node": "node nodes no",
        "configmap": "configmap configmaps cm",
        "replicaset": "replicaset replicasets rs",
    }.items()
    for alias in aliases.split()
}
LONG_FLAGS = {"-n": "--namespace", "-l": "--selector", "-o": "--output", "-c": "--container", "-w": "--watch"}
VALUED = frozenset(
    {"--namespace", "--to-revision", "--revision", "--replicas", "--limits", "--requests", "--container"}
    | {"--timeout", "--tail", "--since", "--selector", "--output", "--sort-by"}
)
SWITCHES = frozenset({"--watch", "--previous", "--containers"})

# Neither an operator of the shell, nor a substitution, nor a second line, nor a <placeholder> is made of these.
_PLAIN = re.compile(r"[A-Za-z0-9 _./:=,@+'\"-]+")


@dataclass(frozen=True)
class Command:
    """One command. `objects` are (kind, name), the name empty where all of a kind are read; `images` container, image."""

    verb: Verb
    objects: tuple[tuple[str, str], ...]
    images: tuple[tuple[str, str], ...]
    flags: Mapping[str, str]

    @property
    def changes(self) -> bool:
        return self.verb in CHANGING

    @property
    def namespace(self) -> str:
        return self.flags.get("--namespace", "")

    def unknown_name(self, known: Callable[[str], bool]) -> str | None:
        """The first name in the command that `known` does not know."""
        images = (part for pair in self.images for part in pair)
        names = (self.namespace, *(name for _, name in self.objects), *images)
        return next((name for name in names if name and not known(name)), None)


def parse(text: str) -> Command | str:
    """The command, or why it is refused, as the end of a sentence about it. Never raises."""
    if not _PLAIN.fullmatch(text):
        return "holds a placeholder or a shell operator; write one complete, plain command per entry"
    try:
        words = shlex.split(text)
    except ValueError:
        return "has an unclosed quote"
    if words[:1] != ["kubectl"]:
        return "does not start with kubectl"
    read = _read_flags(words[1:])
    if isinstance(read, str):
        return read
    plain, flags = read
    verb = next((verb for size in (2, 1) if (verb := tuple(plain[:size])) in CHANGING | READING), None)
    if verb is None:
        allowed = ", ".join(sorted(" ".join(verb) for verb in CHANGING | READING))
        return f"uses a verb that is not allowed; allowed are: {allowed}"
    return _complete(verb, plain[len(verb) :], flags)


def _read_flags(words: list[str]) -> tuple[list[str], dict[str, str]] | str:
    plain: list[str] = []
    flags: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            plain.append(word)
            continue
        name, equals, value = word.partition("=")
        name = LONG_FLAGS.get(name, name)
        if name not in VALUED | SWITCHES:
            return f"uses the flag {name}, which is not allowed; leave it out"
        flags[name] = value if equals or name in SWITCHES else next(rest, "")
    return plain, flags


def _complete(verb: Verb, words: list[str], flags: Mapping[str, str]) -> Command | str:
    images = [word.partition("=") for word in words if "=" in word] if verb == ("set", "image") else []
    objects = _objects(verb, [word for word in words if not (images and "=" in word)])
    if isinstance(objects, str):
        return objects
    command = Command(verb, objects, tuple((container, image) for container, _, image in images), flags)
    return (command.changes and _refuse_change(command)) or command


def _objects(verb: Verb, words: list[str]) -> tuple[tuple[str, str], ...] | str:
    """Both spellings: `deployment/a pod/b`, and `deployment a b`."""
    if verb == ("logs",) and words and "/" not in words[0]:
        words = ["pod", *words]
    if any("/" in word for word in words):
        pairs = [(kind, name) for kind, _, name in (word.partition("/") for word in words)]
        if not all(name for _, name in pairs):
            return "mixes kind/name with other words; write kind/name"
    else:
        pairs = [(words[0], name) for name in words[1:] or [""]] if words else []
    unknown = next((kind for kind, _ in pairs if kind not in KINDS), None)
    if unknown is not None:
        return f"names '{unknown}', which is no kind of object that may be used here; write deployment/NAME"
    return tuple((KINDS[kind], name) for kind, name in pairs)


def _refuse_change(command: Command) -> str | None:
    if not command.objects or not all(kind == "deployment" and name for kind, name in command.objects):
        return "changes something, but names no deployment; write deployment/NAME"
    if not command.namespace:
        return "changes something, but names no namespace; add -n NAMESPACE"
    if command.verb == ("scale",) and not re.fullmatch("[1-9][0-9]{0,3}", command.flags.get("--replicas", "")):
        return "must scale to at least one replica"
    if not re.fullmatch("[0-9]{1,6}", command.flags.get("--to-revision", "0")):
        return "needs a number after --to-revision"
    if command.verb == ("set", "image") and not command.images:
        return "sets no image; write CONTAINER=IMAGE"
    return None
