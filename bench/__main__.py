"""`python -m bench` is the command `bench`."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress


def main() -> None:
    """Load the command and run it. Ctrl-C ends it without a traceback even while it loads."""
    has_default_handler = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if has_default_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        command = _code_command() if sys.argv[1:2] == ["code"] else _whole_command()
    except ModuleNotFoundError as error:
        advice = "`bench code` needs bench-code, typer and pytest; all other commands need: pip install recovery-bench"
        print(f"bench: {error.name} is not installed; {advice}", file=sys.stderr)
        sys.exit(2)
    if has_default_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


def _code_command() -> Callable[[], None]:
    """Return `bench code`, which can be installed without what the other commands need."""
    from bench_code.command import main  # noqa: PLC0415

    return main


def _whole_command() -> Callable[[], None]:
    """Return a function that runs the typed command. If the words name a built-in command or ask for help, no module of
    another command is imported."""
    is_completion = "_BENCH_COMPLETE" in os.environ  # a shell sets this variable to complete a command
    from bench.cli.one_command import command_runner, help_runner  # noqa: PLC0415  the import takes 0.1 s

    if not is_completion and (show_help := help_runner(sys.argv[1:] or ["--help"])):
        return show_help
    from pydantic import create_model  # noqa: PLC0415  the import takes 1 s

    with suppress(Exception):  # pydantic reads all entry points for its first model; where it cannot, it goes on without
        create_model("First")
    if run_typed_command := command_runner(sys.argv[1:]):
        return run_typed_command
    from bench.cli.main import main  # noqa: PLC0415  it imports all commands

    return main


if __name__ == "__main__":
    main()
