"""The program that stands in an agent's config in place of an MCP server:

    shim.py FOLDER SERVER PROGRAM WORD...

It hands its stdin, stdout and stderr over to the gateway, with the words that start the server, its folder and its variables.
The gateway's socket lies in FOLDER, which only this user can enter. It then waits for the exit code of the server, which
becomes its own. No message passes through this program. It imports only from the standard library, and little: it starts once
for each server in each life of an agent.
"""

import json
import os
import signal
import socket
import sys

LOST = 1
"""The exit code if the gateway is gone."""


def main() -> int:
    folder, server, *words = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        cwd = os.getcwd()  # noqa: PTH109  pathlib takes longer than all the rest
    except FileNotFoundError:
        cwd = "/"
    header = {"server": server, "words": words, "cwd": cwd, "environment": _environment()}
    with socket.socket(socket.AF_UNIX) as gateway:
        try:
            os.chdir(folder)  # the path of a socket can't be long
            gateway.connect("gateway")
            socket.send_fds(gateway, [b"\n"], [0, 1, 2])
            os.close(0)
            os.close(1)
            gateway.sendall(json.dumps(header).encode() + b"\n")
            return int(gateway.recv(20) or LOST)
        except OSError as error:
            os.write(2, f"bench probe: its gateway cannot be reached ({error.strerror})\n".encode())
            return LOST


def _environment() -> dict[str, str]:
    """Return the variables as they were given: Python adds LC_CTYPE to its own where no locale is set."""
    if sys.platform != "linux":
        return dict(os.environ)
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  as above
        pairs = (os.fsdecode(line).partition("=") for line in file.read().split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


if __name__ == "__main__":
    sys.exit(main())
