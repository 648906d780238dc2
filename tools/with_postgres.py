"""Start a PostgreSQL server (Debian: postgresql) on a port of loopback for the time of a command:

PYTHONPATH=tools python -m with_postgres PORT COMMAND WORD ...
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from probe.parts import postgres


def main(port: int, command: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="postgres-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # the server runs as another user than root
        with postgres(folder, port) as address:
            if not address:
                sys.exit("PostgreSQL's server is not installed: apt install postgresql")
            return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
