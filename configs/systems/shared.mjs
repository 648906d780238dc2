// What the agents in JavaScript share: the model and the tools over HTTP, and a log of their own, of what they sent and got.
import { appendFileSync } from "node:fs";

const { AGENT_FOLDER, OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL, TOOLS_URL } = process.env;
const headers = { Authorization: `Bearer ${OPENAI_API_KEY}`, "Content-Type": "application/json" };

export function log(entry) {
  appendFileSync(`${AGENT_FOLDER}/log.jsonl`, JSON.stringify(entry) + "\n");
}

export async function ask(messages, tools) {
  log({ what: "model", when: "sent" });
  const body = JSON.stringify({ model: OPENAI_MODEL, messages, tools });
  const answer = await fetch(`${OPENAI_BASE_URL}/chat/completions`, { method: "POST", headers, body });
  const reply = await answer.json();
  const { prompt_tokens, completion_tokens } = reply.usage ?? {};
  log({ what: "model", when: "got", status: answer.status, prompt_tokens, completion_tokens });
  if (!answer.ok) throw new Error(JSON.stringify(reply));
  return reply.choices[0].message;
}

export async function tools() {
  return (await fetch(`${TOOLS_URL}/tools`, { headers })).json();
}

export async function call(name, args) {
  log({ what: "tool", when: "sent", name });
  const answer = await fetch(`${TOOLS_URL}/tools/${name}`, { method: "POST", headers, body: JSON.stringify(args) });
  const said = await answer.text();
  log({ what: "tool", when: "got", name, status: answer.status });
  return said;
}
