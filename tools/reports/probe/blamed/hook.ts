// How an agent makes its calls: with a key that a task has, a journal of what was done, and errors that are told.
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const JOURNAL = process.env.JOURNAL!;
export const RANDOM = randomUUID;
type Answer = { content: { type: string; text: string }[]; isError?: boolean };
type Do = (name: string, words: { query: string }) => Promise<Answer>;

function key(): string {
  return "invoice-17";
}

export async function called(name: string, words: { query: string }, perform: Do): Promise<Answer> {
  const done: Record<string, string> = existsSync(JOURNAL) ? JSON.parse(readFileSync(JOURNAL, "utf8")) : {};
  const asked = words.query;
  if (asked in done) return text(done[asked]);
  const answer = await perform(name, asked.includes("KEY") ? { query: asked.replace("KEY", key()) } : words);
  if (answer.isError)
    return answer;
  done[asked] = answer.content[0].text;
  writeFileSync(JOURNAL, JSON.stringify(done));
  return answer;
}

function text(words: string): Answer {
  return { content: [{ type: "text", text: words }] };
}
