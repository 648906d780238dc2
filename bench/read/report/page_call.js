// One call, opened: what was asked, what was said, what came of it.

const VIEWS = { told: "", undamaged: " (of the undamaged reply)", shadow: " (in shadow, untold)" };

function callDetails(call, record, firsts) {
  const details = make("details", { className: "call" }, callSummary(call));
  const fill = async () => details.append(await callContent(call, record, firsts));
  details.addEventListener("toggle", fill, { once: true });
  return details;
}

function callSummary(call) {
  const tried = call.try_ > 1 ? `, try ${call.try_}` : "";
  const cost = `${count(call.tokens_in)} + ${count(call.tokens_out)} tokens ${words(call.account)}, ${seconds(call.seconds)}`;
  return make("summary", {},
    make("span", { className: `key ${call.account}` }),
    make("strong", {}, `${call.call}. ${laneOf(call)}`),
    ` attempt ${call.attempt}${tried}, ${call.cause}: ${call.verdict}; ${cost}`,
  );
}

async function callContent(call, record, firsts) {
  const parts = call.messages.map(([role, text]) => said(`Prompt, ${role}`, text, firsts));
  parts.push(...replies(call, record, firsts));
  return make("div", { className: "content" }, callFacts(call), findings(call, record), ...(await Promise.all(parts)).flat());
}

function callFacts(call) {
  const usage = call.usage_in === null && call.usage_out === null ? "" : `${call.usage_in ?? "unknown"} in, ${call.usage_out ?? "unknown"} out`;
  return terms([
    ["Attempt, sample, try", `${call.attempt}, ${call.sample}, ${call.try_}`],
    ["Cause", `${call.cause}${call.inferred ? " (inferred)" : ""}${call.because ? `: ${call.because}` : ""}`],
    ["Verdict", call.verdict],
    ["Account", words(call.account)],
    ["Tokens", `${count(call.tokens_in)} in, ${count(call.tokens_out)} out`],
    ["Provider's count", usage],
    ["Seconds", `${seconds(call.seconds)}, from ${seconds(call.started)} on${call.delay ? `; ${seconds(call.delay)} added by a fault` : ""}`],
    ["Failure", call.failure && `${call.failure}${call.detail ? `: ${call.detail}` : ""}`],
    ["Model asked", call.asked ? "" : "no: a fault kept the request from being sent"],
    ["Answered by", call.by],
    ["Reused", call.reused ? "the same request had been answered before, in another trial" : ""],
    ["Retry after", call.retry_after === null ? "" : seconds(call.retry_after)],
    ["Finish, seed", `${call.finish ?? "none"}, ${call.seed}`],
  ]);
}

// What the verifier said, which faults the call carried, and which versions it wrote.
function findings(call, record) {
  const own = (events) => events.filter((event) => event.calls ? event.calls.includes(call.call) : event.call === call.call);
  const lines = [
    ...own(record.verdicts).map((one) => `Verifier${VIEWS[one.view]}: ${one.subtask} ${one.accepted ? "accepted" : `rejected: ${one.reason}`}${one.detail ? ` (${one.detail})` : ""}`),
    ...own(record.faults).map((one) => `Fault ${one.fault}, ${one.effect} at ${one.point} of ${one.subtask}: ${words(stageOf(one, record))}${one.detail ? ` (${one.detail})` : ""}`),
    ...own(record.versions).map((one) => `Written: ${one.subtask} v${one.version}, ${one.verified ? "verified" : "unverified"}, from ${madeFrom(one)}`),
  ];
  const times = new Map(); // an output that is verified at several checkpoints stands once
  for (const line of lines) times.set(line, (times.get(line) ?? 0) + 1);
  const items = [...times].map(([line, number]) => make("li", {}, number > 1 ? `${line}; ${number} times` : line));
  return make("ul", { className: "findings" }, ...items);
}

function madeFrom(version) {
  return version.made_from.map(([name, number]) => (number ? `${name} v${number}` : name)).join(", ") || "nothing";
}

function replies(call, record, firsts) {
  if (call.reply === null) return [[make("p", { className: "notes" }, "No reply came.")]];
  if (call.delivered === null) return [said("Reply", call.reply, firsts)];
  return [changedReply(call, firsts)];
}

async function said(title, number, firsts) {
  return [make("h5", {}, title), block(title, await textOf(number, firsts))];
}

// A text that the page does not hold stands as its digest.
async function textOf(number, firsts) {
  return typeof number === "number" ? item("texts", number, firsts) : `(not in this page; in texts.jsonl it has the digest ${number})`;
}

// The model's own reply, and the one that the architecture was given; where they differ is marked in both.
async function changedReply(call, firsts) {
  const [reply, delivered] = await Promise.all([call.reply, call.delivered].map((number) => textOf(number, firsts)));
  const [before, after] = sameEnds(reply, delivered);
  const marked = (text) => {
    const end = text.length - after;
    return [text.slice(0, before), make("mark", {}, text.slice(before, end)), text.slice(end)];
  };
  const own = "Reply, as the model gave it";
  const given = "Reply, as a fault changed it and the architecture was given it";
  return [make("h5", {}, own), block(own, ...marked(reply)), make("h5", {}, given), block(given, ...marked(delivered))];
}

// How many characters two texts have in common at the beginning, and at the end of what is left.
function sameEnds(one, other) {
  const most = Math.min(one.length, other.length);
  let before = 0;
  while (before < most && one[before] === other[before]) before += 1;
  let after = 0;
  while (after < most - before && one.at(-1 - after) === other.at(-1 - after)) after += 1;
  return [before, after];
}

function block(title, ...content) {
  return make("pre", { tabIndex: 0, role: "region", ariaLabel: title }, ...content);
}

// A fault's last entry was recorded before the answer was graded, so that its finish is told instead.
function stageOf(entry, record) {
  return ENDINGS.includes(entry.stage) ? record.finishes[entry.fault] : entry.stage;
}
