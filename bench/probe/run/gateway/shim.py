"""The program that an agent's config starts in place of an MCP server:

    shim.py FOLDER SERVER PROGRAM WORD...

It passes its stdin, stdout and stderr to the gateway, with the server's command, working folder and variables. The gateway's
socket is in FOLDER, which only this user can enter. Then it waits for the server's exit code, and exits with it. It forwards
no messages itself. It imports only a few modules of the standard library, since it starts once for each server in each
process of the agent.
"""

import json
import os
import signal
import socket
import sys

EXIT_GATEWAY_LOST = 1
"""The exit code if the gateway is gone."""


def main() -> int:
    """Pass the standard streams to the gateway, and return the server's exit code."""
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
            return int(gateway.recv(20) or EXIT_GATEWAY_LOST)
        except OSError as error:
            os.write(2, f"bench probe: its gateway cannot be reached ({error.strerror})\n".encode())
            return EXIT_GATEWAY_LOST


def _environment() -> dict[str, str]:
    """Return the variables with which the process was started. Python itself adds LC_CTYPE where no locale is set."""
    if sys.platform != "linux":
        return dict(os.environ)
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  as above
        pairs = (os.fsdecode(line).partition("=") for line in file.read().split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


if __name__ == "__main__":
    sys.exit(main())
