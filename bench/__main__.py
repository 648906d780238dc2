"""`python -m bench` is the command `bench`."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress


def main() -> None:
    """Load the command and run it. Ctrl-C ends it without a traceback even while it loads."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        command = _code_command() if sys.argv[1:2] == ["code"] else _whole_command()
    except ModuleNotFoundError as error:
        needed = "`bench code` needs bench-code, typer and pytest; all other commands need: pip install recovery-bench"
        print(f"bench: {error.name} is not installed; {needed}", file=sys.stderr)
        sys.exit(2)
    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


def _code_command() -> Callable[[], None]:
    """Return `bench code`, which can be installed without what the other commands need."""
    from bench_code.command import main  # noqa: PLC0415

    return main


def _whole_command() -> Callable[[], None]:
    completes = "_BENCH_COMPLETE" in os.environ  # a shell asks for it, and types no word
    from bench.cli.one_command import command_runner, help_runner  # noqa: PLC0415  it takes a tenth of a second

    if not completes and (names := help_runner(sys.argv[1:] or ["--help"])):
        return names
    from pydantic import create_model  # noqa: PLC0415  it takes a second

    with suppress(Exception):  # pydantic reads all entry points for its first model; where it cannot, it goes on without
        create_model("First")
    if alone := command_runner(sys.argv[1:]):
        return alone
    from bench.cli.main import main  # noqa: PLC0415  the same

    return main


if __name__ == "__main__":
    main()
