// A client of the Model Context Protocol, by its official SDK: https://github.com/modelcontextprotocol/typescript-sdk
//
// --durable   the protocol says nothing of a client that is started again: its conversation is kept in a file, and the call
//             without an answer is made again, its id as the idempotency key that this server reads from `_meta`
import { appendFileSync, existsSync, readFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { ask, log } from "./shared.mjs";

const { AGENT_FOLDER, AGENT_TASK, MCP_URL, OPENAI_API_KEY } = process.env;
const durable = process.argv.includes("--durable");
const kept = `${AGENT_FOLDER}/conversation.jsonl`;
const messages = durable && existsSync(kept) ? readFileSync(kept, "utf8").trim().split("\n").map((line) => JSON.parse(line)) : [];

function keep(message) {
  messages.push(message);
  if (durable) appendFileSync(kept, JSON.stringify(message) + "\n");
}

function unanswered() {
  const told = new Set(messages.map((message) => message.tool_call_id));
  const asked = messages.findLast((message) => message.role !== "tool").tool_calls ?? [];
  return asked.filter((one) => !told.has(one.id));
}

async function answered(call) {
  for (let left = durable ? 2 : 0; ; left--) {
    log({ what: "tool", when: "sent", name: call.name });
    try {
      const said = await client.callTool(call);
      log({ what: "tool", when: "got", name: call.name, status: said.isError ? "error" : "ok" });
      return said.content.map((part) => part.text).join("");
    } catch (error) {
      if (!left) throw error;
    }
  }
}

const client = new Client({ name: "agent", version: "1.0.0" });
const requestInit = { headers: { Authorization: `Bearer ${OPENAI_API_KEY}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit }));
const { tools } = await client.listTools();
const offered = tools.map(({ name, description, inputSchema }) => ({
  type: "function",
  function: { name, description, parameters: inputSchema },
}));

if (!messages.length) keep({ role: "user", content: AGENT_TASK });
for (;;) {
  for (const one of unanswered()) {
    const { name, arguments: text } = one.function;
    const call = { name, arguments: JSON.parse(text), ...(durable && { _meta: { idempotencyKey: one.id } }) };
    keep({ role: "tool", tool_call_id: one.id, content: await answered(call) });
  }
  if (messages.at(-1).role === "assistant") break;
  keep(await ask(messages, offered));
}
console.log(messages.at(-1).content);
await client.close();
