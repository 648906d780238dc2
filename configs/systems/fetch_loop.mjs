// A loop in JavaScript without any package. Nothing is kept.
import { ask, call, tools } from "./shared.mjs";

const offered = await tools();
const messages = [{ role: "user", content: process.env.AGENT_TASK }];
for (;;) {
  const reply = await ask(messages, offered);
  messages.push(reply);
  if (!reply.tool_calls?.length) break;
  for (const one of reply.tool_calls) {
    const said = await call(one.function.name, JSON.parse(one.function.arguments));
    messages.push({ role: "tool", tool_call_id: one.id, content: said });
  }
}
console.log(messages.at(-1).content);
