"""`python -m bench` is the command `bench`."""

import signal


def main() -> None:
    """Load the command and run it. Ctrl-C ends it without a traceback even while it loads."""
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bench.cli.main import main as command  # noqa: PLC0415  it takes a second

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


if __name__ == "__main__":
    main()
