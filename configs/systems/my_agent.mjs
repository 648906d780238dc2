// The agent of docs/own_agent_in_a_world.md in JavaScript, without any package: it keeps its conversation, and each call has its own key.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, TOOLS_URL, AGENT_TASK, AGENT_FOLDER } = process.env;
const headers = { Authorization: `Bearer ${OPENAI_API_KEY}`, "Content-Type": "application/json" };
const kept = `${AGENT_FOLDER}/conversation.json`;

const keep = (messages) => {
  writeFileSync(`${kept}.new`, JSON.stringify(messages));
  renameSync(`${kept}.new`, kept);
};

const answerTo = async ({ id, function: { name, arguments: body } }) => {
  for (let tries = 0; tries < 5; tries++) {
    try {
      const given = { method: "POST", headers: { ...headers, "Idempotency-Key": id }, body };
      const answer = await fetch(`${TOOLS_URL}/tools/${name}`, given);
      if (answer.status !== 503) return await answer.text();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // fetch's word for no answer
    }
  }
  return "no answer came";
};

const tools = await (await fetch(`${TOOLS_URL}/tools`, { headers })).json();
const messages = existsSync(kept) ? JSON.parse(readFileSync(kept)) : [{ role: "user", content: AGENT_TASK }];
for (;;) {
  if (messages.at(-1).role !== "assistant") {
    const body = JSON.stringify({ model: OPENAI_MODEL, messages, tools });
    const reply = await (await fetch(`${OPENAI_BASE_URL}/chat/completions`, { method: "POST", headers, body })).json();
    messages.push(reply.choices[0].message);
    keep(messages);
  }
  const calls = messages.at(-1).tool_calls ?? [];
  if (!calls.length) break;
  for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: await answerTo(call) });
  keep(messages);
}
