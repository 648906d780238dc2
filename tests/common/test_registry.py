"""Parts of other packages stand beside ours; what cannot be had of a package is one line, and all else goes on to work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from plugged import KINDS, PARROT, install, install_package, plugged

from bench.common.errors import ConfigError
from bench.common.registry import Registry, attribute_at, written_names
from bench.entries import ENTRIES
from bench.run.architectures.registry import ARCHITECTURES, architecture_named, load_architecture
from bench.run.trial.effects import EFFECTS, CallEffect, effect_at

GOOD = """from bench.run.trial.effects import TextEffect
PART = TextEffect("loud", lambda target, _: target.text.upper(), points=("output",))
"""
POINT = {"recovery_bench.effects": {"loud": "loud_parts:PART"}}


def left_out(
    folder: Path,
    module: str,
    points: Mapping[str, Mapping[str, str]] = POINT,
    requires: Sequence[str] = (),
    kind: Registry[object] = EFFECTS,  # type: ignore[type-var,assignment]
) -> list[str]:
    """What is said of the parts of this package, beside a sound one whose part is there."""
    install(folder / "bad", "loud-parts", points, {"loud_parts.py": module}, requires)
    install(
        folder / "good",
        "quiet-parts",
        {"recovery_bench.effects": {"quiet": "quiet_parts:PART"}},
        {"quiet_parts.py": GOOD.replace("loud", "quiet")},
    )
    with plugged(folder / "bad", folder / "good"):
        assert ("quiet", "output") in EFFECTS and ("slow", "call") in EFFECTS
        return list(kind.left_out)


def test_each_kind_has_the_parts_of_another_package_behind_ours(tmp_path: Path) -> None:
    install_package(tmp_path)
    with plugged(tmp_path, PARROT):
        for kind in KINDS:
            packages = [part.package for part in kind]
            assert packages[0] == "" and packages[-1] == "parrot-parts 1.0", kind.word
            assert packages == sorted(packages) and not kind.left_out
        assert effect_at("startled", "call", CallEffect).fails
    assert "parrot" not in ARCHITECTURES


def test_a_module_that_raises_is_told_with_its_place_and_what_it_raised(tmp_path: Path) -> None:
    [line] = left_out(tmp_path, "WORDS = {}\nPART = WORDS['loud']\n")
    assert (
        line
        == "loud-parts 1.0 is left out: its effects, 'loud_parts:PART', cannot be imported: loud_parts.py:2: KeyError: 'loud'"
    )


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (f"import nowhere\n{GOOD}", "No module named 'nowhere'"),
        (GOOD.replace("PART", "PARTS"), "module 'loud_parts' has no attribute 'PART'"),
        ("PART = {}", "TypeError: it is no bench.run.trial.effects.Effect, and no tuple of them"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("PART = (", "SyntaxError: '(' was never closed"),
        (
            GOOD.replace('("output",)', '("output", "dream")'),
            "ValueError: 'loud' says points = 'dream'; known: input, output, state",
        ),
        (GOOD.replace("points", "place"), "TypeError: TextEffect.__init__() got an unexpected keyword argument 'place'"),
    ],
)
def test_whatever_hinders_a_package_is_one_line(tmp_path: Path, module: str, message: str) -> None:
    [line] = left_out(tmp_path, module)
    assert line.startswith("loud-parts 1.0 is left out: its effects, 'loud_parts:PART', cannot be imported: ")
    assert line.endswith(message) and "\n" not in line


def test_a_name_that_is_taken_stays_whose_it_is(tmp_path: Path) -> None:
    two = GOOD.replace("loud", "empty") + GOOD.partition("\n")[2].replace("PART", "LOUD") + "PART = (PART, LOUD)\n"
    [line] = left_out(tmp_path, two)
    message = "there is one of this name, by recovery-bench; it is to be given another"
    assert line == f"loud-parts 1.0: its effect 'empty' is left out: {message}"


def test_a_part_of_a_package_that_needs_a_newer_version_is_left_out_unread(tmp_path: Path) -> None:
    [line] = left_out(tmp_path, "raise SystemExit('read')", requires=["aiohttp", "recovery-bench>=99"])
    assert line.startswith("loud-parts 1.0 is left out: it needs recovery-bench>=99, and this is 0.")
    assert left_out(tmp_path / "again", GOOD, requires=["recovery-bench>=0.1"]) == []


def test_an_unknown_name_is_told_with_what_was_left_out(tmp_path: Path) -> None:
    install(tmp_path, "loud-parts", {"recovery_bench.architectures": {"loud": "loud_parts:PART"}}, {"loud_parts.py": "1 / 0"})
    with plugged(tmp_path), pytest.raises(ConfigError) as refused:
        architecture_named("loud")
    assert str(refused.value).startswith("unknown architecture 'loud'; known: ")
    assert str(refused.value).endswith("cannot be imported: loud_parts.py:1: ZeroDivisionError: division by zero")


def test_an_import_path_may_lead_to_an_entry() -> None:
    with plugged(PARROT):
        part = architecture_named("parrot_parts.architecture:PART")
        assert part.name == "parrot" and load_architecture(part).__name__ == "parrot"


@pytest.mark.parametrize("kind", ENTRIES)
def test_the_names_that_stand_in_the_code_are_those_of_the_parts(kind: str) -> None:
    entries = [attribute_at(path) for path in ENTRIES[kind]]
    names = [part.name for each in entries for part in (each if isinstance(each, tuple) else (each,))]
    assert written_names(kind) in (None, names)


@pytest.mark.parametrize(("words", "most"), [(["list", "tables"], 30), (["list"], 50)])
def test_parts_are_listed_by_name_without_what_no_name_needs(words: list[str], most: int) -> None:
    assert all(map(written_names, ("tables", "figures", "exports", "effects", "models")))
    program = f"""
import sys
from contextlib import suppress
from bench.__main__ import main
sys.argv = ["bench", *{words}]
with suppress(SystemExit):
    main()
print(sum(name.startswith("bench") for name in sys.modules), "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules, pandas = done.stdout.splitlines()[-1].split()
    assert int(modules) <= most and pandas == "False"
