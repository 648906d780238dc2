// The AI SDK with MCP servers, in TypeScript: https://ai-sdk.dev/docs/ai-sdk-core/mcp-tools
//
// tsx ai_sdk.ts MCP_JSON TASK
import { readFileSync } from "node:fs";

import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, tool, type ToolSet } from "ai";

const [config, task] = process.argv.slice(2);
const { OPENAI_API_KEY, OPENAI_BASE_URL, SHOP_URL } = process.env;

type Server = { command: string; args?: string[]; env?: Record<string, string> };
const { mcpServers } = JSON.parse(readFileSync(config, "utf8")) as { mcpServers: Record<string, Server> };
const clients = await Promise.all(
  Object.values(mcpServers).map(({ command, args, env }) =>
    createMCPClient({ transport: new StdioTransport({ command, args, env: { ...(process.env as Record<string, string>), ...env } }) }),
  ),
);

const graphql = tool({
  description: "Ask the shop's GraphQL API.",
  inputSchema: jsonSchema<{ query: string }>({ type: "object", properties: { query: { type: "string" } }, required: ["query"] }),
  execute: async (asked) => {
    const headers = { "Content-Type": "application/json" };
    const signal = AbortSignal.timeout(20_000);
    const answer = await fetch(`${SHOP_URL}/graphql`, { method: "POST", headers, body: JSON.stringify(asked), signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return await answer.text();
  },
});

try {
  const offered: ToolSet[] = await Promise.all(clients.map((client) => client.tools()));
  const tools: ToolSet = Object.assign({}, ...offered, SHOP_URL ? { graphql } : {});
  const provider = createOpenAICompatible({ name: "openai", baseURL: OPENAI_BASE_URL!, apiKey: OPENAI_API_KEY });
  const { text } = await generateText({ model: provider("gpt-5-mini"), tools, prompt: task, stopWhen: stepCountIs(30) });
  console.log(text);
} finally {
  await Promise.all(clients.map((client) => client.close()));
}
