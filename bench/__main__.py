"""`python -m bench` is the command `bench`."""

import signal
from contextlib import suppress


def main() -> None:
    """Load the command and run it. Ctrl-C ends it without a traceback even while it loads."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pydantic import create_model  # noqa: PLC0415  it takes a second

    with suppress(Exception):  # pydantic reads all entry points for its first model; where it cannot, it goes on without
        create_model("First")
    from bench.cli.main import main as command  # noqa: PLC0415  the same

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


if __name__ == "__main__":
    main()
