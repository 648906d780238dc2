"""Says what each of its lives was given, and then does something, of which its first life dies."""

import http.client
import json
import os
from pathlib import Path

SEEN = Path("seen")
with SEEN.open("a") as seen:
    for name, value in sorted(os.environ.items()):
        if name != "LC_CTYPE":  # Python's own
            seen.write(f"{name}={' '.join(value.split())}\n")
    seen.write("--\n")
headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
connection = http.client.HTTPConnection(os.environ["TOOLS_URL"].removeprefix("http://"))
connection.request("POST", "/tools/notify", json.dumps({"order": 1, "text": "refunded"}), headers)
connection.getresponse()
print(SEEN.read_text())
