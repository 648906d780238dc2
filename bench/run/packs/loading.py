"""Find packs and load them. A pack's code is loaded once; each scenario made from it is refused if it is unusable."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.common.errors import PackError, Unavailable, nearest
from bench.common.packs import ENTRY, find_packs
from bench.common.raised import place_of, type_and_message
from bench.common.seeding import seed_of
from bench.run.packs.code import PackCode, code_of
from bench.run.packs.digests import asked_digest, grading_digest
from bench.run.packs.folder import PackFolder
from bench.run.packs.names import refuse_names
from bench.run.packs.refusals import accepts_values, refuse
from bench.run.packs.untrusted import SYNTAX_PREFIX, sandbox_names
from bench.scenario import Scenario

VARIANT_FILES = "variants*.py"
"""The pattern of files that add variants. Only the digests of their own variants depend on these files."""
DEFAULT_VARIANTS = ("paper",)
ONE_TASK = ("",)
"""The instances of a pack that has one task."""


@dataclass(frozen=True)
class Pack:
    """A pack's loaded code. `modules` maps each variant, the default first, to the module that defines it. `divided` has the
    files that the instances share, since they were read."""

    path: Path
    modules: Mapping[str, ModuleType]
    divided: dict[Hashable, PackCode] = dataclasses.field(default_factory=dict, compare=False)

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(self.modules)

    def entry(self, variant: str) -> Path:
        """Return the file that defines a variant."""
        return self.path / Path(str(self.modules[variant].__file__)).name

    def instances(self, variant: str) -> tuple[str, ...]:
        """Return the names of the pack's instances; ONE_TASK if it defines none. Raises PackError for unusable names."""
        instances = getattr(self.modules[variant], "instances", None)
        if instances is None:
            return ONE_TASK
        returned = self._call("instances(folder)", instances, self._folder(variant))
        if returned is None or isinstance(returned, str | bytes):
            raise PackError(f"{self.entry(variant)}: instances(folder) returns {returned!r}; return the names of the instances")
        names = self._call("instances(folder)", tuple, returned)
        refuse_names(names, "instance", str(self.entry(variant)))
        return tuple(names)

    def scenario(self, variant: str, instance: str, instances: tuple[str, ...]) -> Scenario:
        """Build one scenario. Raises PackError if it is unusable."""
        entry = self.entry(variant)
        build = getattr(self.modules[variant], "scenario", None)
        parameters, arguments = ("folder, instance", (instance,)) if instance else ("folder", ())
        signature = f"scenario({parameters})"
        if build is None:
            raise PackError(f"{entry}: defines no function {signature}")
        folder = self._folder(variant, instance, instances)
        if not accepts_values(build, len(arguments) + 1):
            hint = "" if instance else "; a pack of several tasks defines instances(folder) as well"
            raise PackError(f"{entry}: `scenario` must take ({parameters}){hint}")
        loaded = self._call(signature, build, folder, *arguments)
        if not isinstance(loaded, Scenario):
            raise PackError(f"{entry}: {signature} must return a bench.scenario.Scenario")
        name = self.path.name if variant == self.variants[0] else f"{self.path.name}:{variant}"
        loaded = dataclasses.replace(loaded, name=name, variant=variant, instance=instance)
        self._call("an output type", refuse, loaded)
        code = code_of(self.path, loaded, entry.name, self.divided)
        checks, all_parts = sandbox_names(code.asked), sandbox_names((*code.asked, *code.grading))
        return dataclasses.replace(
            loaded,
            asked=asked_digest(loaded, self.path, code),
            graded_by=grading_digest(loaded, self.path, code),
            checks_use_sandbox=bool(checks),
            checks_run_code=not all(name.startswith(SYNTAX_PREFIX) for name in checks),
            grader_runs_code=not all(name.startswith(SYNTAX_PREFIX) for name in all_parts),
        )

    def _folder(self, variant: str, instance: str = "", instances: tuple[str, ...] = ()) -> PackFolder:
        """Return the pack's folder as this variant and this instance read it."""
        return PackFolder(self.path, variant, instance, frozenset({*self.variants, *instances} - {variant, instance, ""}))

    def _call(self, what: str, function: Callable[..., Any], *values: object) -> Any:
        """Call a function of the pack. Its exceptions become a PackError, in which `what` names the function."""
        try:
            return function(*values)
        except PackError:
            raise
        except (Exception, SystemExit) as error:
            raise PackError(f"{_place(error, self.path)}: {what} fails: {type_and_message(error)}") from error


def load_pack(name: str, roots: Iterable[Path], instance: str = "") -> Scenario:
    """Load one instance of the pack `name`, or `name:variant`; its only or first instance if none is named.

    Raises PackError for an unknown pack, variant or instance, a module that does not load, or any fault that `refuse` names.
    """
    pack, variant = _find(name, roots)
    instances = pack.instances(variant)
    if instance and instances == ONE_TASK:
        raise PackError(f"scenario '{name}' has one task and so no instance '{instance}'; leave the instance out")
    if instance and instance not in instances:
        raise PackError(f"scenario '{name}' has no instance '{instance}'; {nearest(instance, instances)}")
    return pack.scenario(variant, instance or instances[0], instances)


def load_instances(
    name: str, roots: Iterable[Path], count: int | None = None, *drawn_for: object, without: Container[str] = ()
) -> tuple[Scenario, ...]:
    """Load the instances of the pack `name`, or `name:variant`, in the pack's order: all instances that are not in `without`,
    or a sample of `count` of them. Raises as `load_pack` does."""
    pack, variant = _find(name, roots)
    instances = pack.instances(variant)
    available = [instance for instance in instances if instance not in without]
    return tuple(pack.scenario(variant, instance, instances) for instance in sample(available, count, *drawn_for))


def sample(names: Sequence[str], count: int | None, *drawn_for: object) -> list[str]:
    """Return `count` of the names, or all for None, in their original order. `drawn_for` is the key of the random draw.

    Each name has a rank that depends only on the name and on `drawn_for`, and the first in rank are chosen. So a smaller sample
    is part of a larger one, and added names do not change the order of the others.
    """
    chosen = set(sorted(names, key=lambda name: seed_of(*drawn_for, name))[:count])
    return [name for name in names if name in chosen]


def instances_of(name: str, roots: Iterable[Path]) -> tuple[str, ...]:
    """Return the instances of the pack `name`, or `name:variant`; ("",) if it has one task. Raises as `load_pack` does."""
    pack, variant = _find(name, roots)
    return pack.instances(variant)


def missing_data(name: str, roots: Iterable[Path]) -> str:
    """Return what an unavailable pack lacks, in words; "" if it is available."""
    try:
        instances_of(name, roots)
    except Unavailable as error:
        return str(error)
    return ""


def variants_of(folder: Path) -> tuple[str, ...]:
    """Return the variants of the pack in `folder`, the default first."""
    return _open(folder).variants


def entry_of(folder: Path, variant: str) -> Path:
    """Return the file of the pack in `folder` that defines a variant."""
    return _open(folder).entry(variant)


def _find(name: str, roots: Iterable[Path]) -> tuple[Pack, str]:
    """Return the pack and the variant that `name`, or `name:variant`, refers to."""
    packs = find_packs(roots)
    pack_name, _, variant = name.partition(":")
    if pack_name not in packs:
        raise PackError(f"unknown scenario '{pack_name}'; {nearest(pack_name, packs) if packs else _no_packs(roots)}")
    pack = _open(packs[pack_name])
    if variant and variant not in pack.variants:
        raise PackError(f"scenario '{pack_name}' has no variant '{variant}'; {nearest(variant, pack.variants)}")
    return pack, variant or pack.variants[0]


def _no_packs(roots: Iterable[Path]) -> str:
    """Return the end of an error line if there are no packs at all."""
    folders = ", ".join(f"{root}/" for root in roots)
    return f"there is no pack in {folders}: run this where the folder scenarios/ is, or name that with --scenarios DIR"


def _open(folder: Path) -> Pack:
    """Load the code of the pack in a folder."""
    pack = _load_module(folder)
    modules = [pack, *(_load_variants(file, pack) for file in sorted(folder.glob(VARIANT_FILES)))]
    owners = []
    for module in modules:
        owners += [(variant, module) for variant in _variants(module, folder / Path(str(module.__file__)).name)]
    refuse_names([variant for variant, _ in owners], "variant", str(folder / ENTRY), digit_first=True)
    return Pack(folder, dict(owners))


def _variants(module: ModuleType, file: Path) -> tuple[str, ...]:
    """Return the variants that a pack's module defines. Raises PackError if VARIANTS is no tuple of names."""
    variants = getattr(module, "VARIANTS", DEFAULT_VARIANTS)
    if isinstance(variants, str) or not isinstance(variants, tuple | list):
        raise PackError(f'{file}: VARIANTS is {variants!r}; write a tuple of names, as in ("paper",)')
    return tuple(variants)


def _load_variants(file: Path, pack: ModuleType) -> ModuleType:
    """Import a file that adds variants to a pack, and return its module. Raises PackError if it does not load."""
    try:
        return importlib.import_module(f"{pack.__name__}.{file.stem}")
    except (Exception, SystemExit) as error:
        raise PackError(f"{_place(error, file.parent)}: does not load: {type_and_message(error)}") from error


def _load_module(folder: Path) -> ModuleType:
    """Import the pack in a folder as a package, once in a process. Raises PackError if it does not load."""
    # named by the folder's full path, so that two packs of the same name never share a module
    unique = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    name = f"bench_pack_{unique}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, folder / ENTRY, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise PackError(f"{folder / ENTRY}: is not a Python module")
    module = importlib.util.module_from_spec(spec)
    # the package is also its own module `scenario`: a sibling file that imports `scenario` gets this module, not a copy
    names = (name, f"{name}.{Path(ENTRY).stem}")
    sys.modules.update(dict.fromkeys(names, module))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        for module_name in names:
            del sys.modules[module_name]
        raise PackError(f"{_place(error, folder)}: does not load: {type_and_message(error)}") from error
    return module


def _place(error: BaseException, folder: Path) -> str:
    """Return the file and line in the pack at which an error was raised."""
    return str(folder / (place_of(error, folder) or ENTRY))
