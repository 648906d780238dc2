"""What a planner and a worker do at a queue in PostgreSQL: python queue_workers.py ROLE VERSION [OPTION ...]

`queue_foreman.py` starts them and says what the options mean. Neither keeps anything but rows. A worker holds a job by a lock
on its row while it makes the call, so a worker's death sets the job free.
"""

import json
import os
import sys
import time
from pathlib import Path

import httpx2
import psycopg

SCHEMA = f'"{Path(os.environ["AGENT_FOLDER"]).parent.name}"'
TABLES = """CREATE TABLE message (number serial, planner text, body jsonb);
CREATE TABLE job (number serial, message int, asked text, tool text, arguments text, key text, answer text, worker text)"""
NEXT = "SELECT number, tool, arguments, key FROM job WHERE answer IS NULL ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED"
KEYS, PINNED = "--keys" in sys.argv, "--pinned" in sys.argv
FORMS = {"1": "job {}", "2": "v2/{}"}
"""Version of the tools' adapter -> how it makes a key of a job's number."""
PAUSE = 0.03

db = psycopg.connect(os.environ["QUEUE"], autocommit=True, options=f"-c search_path={SCHEMA}")
headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
http = httpx2.Client(headers=headers, timeout=60, transport=httpx2.HTTPTransport())


def planner(version: str) -> None:
    if not PINNED:
        db.execute("DELETE FROM job USING message m WHERE m.number = message AND answer IS NULL AND planner != %s", (version,))
    tools = http.get(f"{os.environ['TOOLS_URL']}/tools").json()
    stored = "SELECT number, body FROM message WHERE %s OR planner = %s ORDER BY number"
    while True:
        plan = db.execute(stored, (PINNED, version)).fetchall()
        plan = plan or [written(version, {"role": "user", "content": os.environ["AGENT_TASK"]})]
        if plan[-1][1]["role"] != "assistant":
            asked = {"model": os.environ["OPENAI_MODEL"], "messages": [body for _, body in plan], "tools": tools}
            reply = http.post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", json=asked).raise_for_status().json()
            plan.append(written(version, reply["choices"][0]["message"]))
        number, message = plan[-1]
        if not message.get("tool_calls"):
            return
        answers = db.execute(OPEN_AND_ANSWERS, (number,)).fetchall()
        while any(answer is None for _, answer in answers):
            time.sleep(PAUSE)
            answers = db.execute(OPEN_AND_ANSWERS, (number,)).fetchall()
        with db.transaction():
            for asked, answer in answers:
                written(version, {"role": "tool", "tool_call_id": asked, "content": answer})


OPEN_AND_ANSWERS = "SELECT asked, answer FROM job WHERE message = %s ORDER BY number"


def written(version: str, message: dict) -> tuple[int, dict]:
    """Keep a message, and with it the jobs that it asks for: all or nothing."""
    keep = "INSERT INTO message (planner, body) VALUES (%s, %s) RETURNING number"
    with db.transaction():
        [number] = db.execute(keep, (version, json.dumps(message))).fetchone()
        for call in message.get("tool_calls") or []:
            asked, function = call["id"], call["function"]
            job = (number, asked, function["name"], function["arguments"], f"plan {number} {asked}" if PINNED else None)
            db.execute("INSERT INTO job (message, asked, tool, arguments, key) VALUES (%s, %s, %s, %s, %s)", job)
    return number, message


def worker(version: str) -> None:
    while True:
        with db.transaction():
            if job := db.execute(NEXT).fetchone():
                number, tool, arguments, key = job
                sent = {"Idempotency-Key": key or FORMS[version].format(number)} if KEYS else {}
                answer = http.post(f"{os.environ['TOOLS_URL']}/tools/{tool}", content=arguments, headers=sent)
                by = f"adapter {version}, process {os.getpid()}"
                db.execute("UPDATE job SET answer = %s, worker = %s WHERE number = %s", (answer.text, by, number))
        time.sleep(0 if job else PAUSE)


if __name__ == "__main__":
    {"planner": planner, "worker": worker}[sys.argv[1]](sys.argv[2])
