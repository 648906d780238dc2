"""The same attacks within bubblewrap: none gets further there, and it does what Landlock does where that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from reliability.attacks import GROUPS, attacks
from reliability.attempts import Target, targets, tried

from bench.common.errors import ConfigError
from bench.run.sandbox import bubblewrap, guards, launching, run_python
from bench.run.sandbox.bubblewrap import BACKEND_ENV
from bench.run.sandbox.guards import WITHOUT_ENV

OBSTACLE = bubblewrap._obstacle()
HERE = pytest.mark.skipif(bool(OBSTACLE), reason=f"bubblewrap does not run here: {OBSTACLE}")
LANDLOCK = "other files, truncation, TCP, signals"
SHORT = ("files", "signals")
OF_ITSELF = {
    *("os.listdir('/')", "os.listdir('..')", "os.listdir('/proc')", "os.listdir('/proc/self/fd')", "next(os.scandir('/root'))"),
    *("open('/proc/self/environ').read()", "open('/proc/self/maps').read()", "open('/proc/self/status').read()"),
    "open(library + '/ctypes/__init__.py').read()",
}
"""What shows it the few files and processes that are there: names, its own state, the library."""


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bubblewrap and the kernel's guards alone, as for code that had stepped over the audit hook."""
    monkeypatch.setenv(BACKEND_ENV, "bubblewrap")
    monkeypatch.setenv(WITHOUT_ENV, "trip-wire")


@pytest.fixture
def target() -> Iterator[Target]:
    with targets(sacrificed=True) as places:
        yield places


@HERE
@pytest.mark.usefixtures("within")
@pytest.mark.parametrize(
    "group", [pytest.param(group, marks=() if group in SHORT else pytest.mark.endurance) for group in GROUPS]
)
def test_every_attack_is_refused(group: str, target: Target) -> None:
    assert tried(attacks(group), target) == {}
    assert target.untouched()


@HERE
@pytest.mark.usefixtures("within")
@pytest.mark.parametrize("group", ["files", "signals", "channels"])
def test_it_does_what_landlock_would(group: str, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITHOUT_ENV, f"trip-wire, {LANDLOCK}")
    reached = tried(attacks(group), target)
    assert reached.keys() <= OF_ITSELF
    assert target.untouched()


@HERE
@pytest.mark.usefixtures("within")
def test_it_sees_its_own_files_and_processes_alone() -> None:
    looks = "import os\ndef main(names): return [os.getpid() < 100, *map(os.path.exists, names)]"
    names = [str(Path(__file__)), "/etc/passwd", "/var", "/home", str(Path(launching.__file__).parents[2] / "cli")]
    assert run_python({}, looks, names).value == [True, False, False, False, False, False]


@HERE
@pytest.mark.usefixtures("within")
def test_it_is_one_of_the_guards_that_are_shown_and_recorded() -> None:
    assert guards().as_json()["bubblewrap"] == "in force"


@HERE
def test_it_ends_with_its_launcher() -> None:
    ours = launching.Launcher("bubblewrap")
    assert ours.runs() and ours.folder.exists()
    ours.close()
    assert not ours.runs() and not ours.folder.exists()


@pytest.mark.parametrize(("named", "words"), [("docker", "there is no 'docker'"), ("bubblewrap", "there is no program bwrap")])
def test_a_wall_that_is_not_here_is_refused_in_one_line(named: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BACKEND_ENV, named)
    monkeypatch.setenv("PATH", "/nowhere")
    bubblewrap._obstacle.cache_clear()
    with pytest.raises(ConfigError, match=words):
        guards()
    bubblewrap._obstacle.cache_clear()
