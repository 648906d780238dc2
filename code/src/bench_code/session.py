"""`python -m bench_code.session ARGUMENT...` is pytest, which Ctrl-C ends without a traceback even while it loads."""

import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the session has begun
    import pytest

    sys.exit(pytest.main())
