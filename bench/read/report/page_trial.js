// One trial as a timeline of its calls by subtask, and beside it another one of the same instance and repetition.

const ACCOUNTS = ["in_answer", "rejected", "superseded", "redundant", "lost", "judging"];
const COUNTERPARTS = { architecture: "Another architecture", plan: "Another fault plan", model: "Another model" };
const ENDINGS = ["recovered", "gave_up", "undetected"]; // as they are recorded, before the answer is graded
const UNSOLVED = {
  wrong: "The answer of this trial is wrong: tokens that are “in answer” made a wrong answer.",
  gave_up: "This trial gave up: it has no answer.",
};
const NONE = "-1";

class TrialView {
  constructor(index, host, closed) {
    this.trials = index.trials;
    this.firsts = index.firsts;
    this.host = host;
    this.closed = closed;
  }

  // The trials that differ from this one in just one thing; column -> rows.
  counterparts(row) {
    const differing = (other) => Object.keys(COUNTERPARTS).filter((column) => this.trials[column][row] !== this.trials[column][other]);
    const same = (other) => ["scenario", "instance", "repetition"].every((column) => this.trials[column][row] === this.trials[column][other]);
    const found = { architecture: [], plan: [], model: [] };
    for (const other of this.trials.id.keys()) {
      if (!same(other)) continue;
      const columns = differing(other);
      if (columns.length === 1) found[columns[0]].push(other);
    }
    return found;
  }

  // Show a trial, and beside it another one; the first other architecture if none is named, none at all for -1.
  async open(row, beside, focused = "heading") {
    const counterparts = this.counterparts(row);
    const other = beside ?? counterparts.architecture[0] ?? -1;
    const rows = other < 0 ? [row] : [row, other];
    const records = await Promise.all(rows.map((one) => this.record(one)));
    const longest = Math.max(...records.map(lengthOf));
    const panes = rows.map((one, place) => this.pane(one, records[place], longest));
    const heading = make("h3", { tabIndex: -1 }, this.title(row));
    this.host.replaceChildren(heading, this.controls(row, other, counterparts), legend(), make("div", { className: "panes" }, ...panes));
    visit(`#trial-${rows.map((one) => this.trials.id[one]).join("+")}`);
    const target = this.host.querySelector(focused === "heading" ? "h3" : `[data-control="${focused}"] select`);
    target.focus();
    if (focused === "heading") heading.scrollIntoView();
  }

  // What happened in a trial; null where the page has no room for it.
  record(row) {
    const number = this.trials.number[row];
    return number === null ? null : item("trials", number, this.firsts.trials);
  }

  title(row) {
    const { scenario, instance, model, plan, repetition, id } = this.trials;
    const task = [scenario[row], instance[row]].filter(Boolean).join(" ");
    return `${task}, ${model[row]}, fault plan ${plan[row]}, repetition ${repetition[row]} (trial ${id[row].slice(0, 8)})`;
  }

  controls(row, other, counterparts) {
    const named = (column) => (one) => [`${one}`, this.trials[column][one]];
    const architectures = [row, ...counterparts.architecture].sort((one, another) => one - another).map(named("architecture"));
    const others = Object.entries(COUNTERPARTS).flatMap(([column, label]) => counterparts[column].map((one) => [`${one}`, `${label}: ${this.trials[column][one]}`]));
    const first = choice("Architecture", architectures, `${row}`, (value) => {
      const chosen = Number(value);
      this.open(chosen, chosen === other ? row : this.stillBeside(chosen, other), "first");
    });
    const second = choice("Beside it", [[NONE, "nothing"], ...others], `${other}`, (value) => this.open(row, Number(value), "second"));
    first.dataset.control = "first";
    second.dataset.control = "second";
    return make("div", { className: "controls" }, first, second, button("Close the trial", () => this.close()));
  }

  // What stood beside stays there, unless it has no more than that in common with the new one.
  stillBeside(row, other) {
    return other < 0 || Object.values(this.counterparts(row)).flat().includes(other) ? other : undefined;
  }

  close() {
    this.hide();
    visit("#trials");
    this.closed();
  }

  hide() {
    this.host.replaceChildren();
  }

  pane(row, record, longest) {
    const heading = make("h4", {}, this.trials.architecture[row], " ", make("span", { className: "outcome" }, this.trials.outcome[row]));
    if (record === null) return make("article", {}, heading, make("p", { className: "notes" }, leftOut(this.trials.id[row])));
    const calls = record.calls.map((call) => callDetails(call, record, this.firsts.texts));
    const place = new Map(record.calls.map((call, number) => [call.call, calls[number]]));
    return make("article", { className: UNSOLVED[this.trials.outcome[row]] ? "unsolved" : "" },
      heading,
      this.facts(row, record),
      receipts(record),
      ...unsolved(this.trials.outcome[row]),
      ...idle(record.world),
      accountBar(record.accounts),
      timeline(record, longest, (call) => reveal(place.get(call))),
      make("div", {}, ...calls),
      worldOf(record.world),
    );
  }

  facts(row, record) {
    const column = (name) => this.trials[name][row];
    return terms([
      ["Model, plan", `${column("model")}, ${column("plan")}`],
      ["Tokens", `${count(column("tokens"))}, of them ${count(column("retry_tokens"))} retry tokens, in ${column("calls")} calls`],
      ["Seconds", `API ${seconds(record.seconds.api)}, waiting ${seconds(record.seconds.waiting)}, framework ${seconds(record.seconds.framework)}; ${record.timing}`],
      ["Score", record.score === null ? "" : `${record.score}${record.note ? `: ${record.note}` : ""}`],
      ["Reason", record.reason],
      ["Answer", record.answer.map(([name, version]) => `${name} v${version}`).join(", ") || "none"],
    ]);
  }
}

function leftOut(id) {
  return `The page has no room for what happened in this trial. “bench trace RUN --trial ${id}” shows it.`;
}

function lengthOf(record) {
  if (record === null) return 0;
  return Math.max(0, ...[...record.calls, ...record.waits].map((event) => event.started + event.seconds));
}

function legend() {
  const keys = ACCOUNTS.map((account) => make("li", {}, make("span", { className: `key ${account}` }), words(account)));
  return make("ul", { className: "legend", ariaLabel: "Accounts" }, ...keys);
}

// Each planned fault with the stages that it went through, and what became of it.
function receipts(record) {
  const numbers = [...new Set(record.faults.map((entry) => entry.fault))];
  const lines = numbers.map((number) => make("li", {}, receipt(record.faults.filter((entry) => entry.fault === number), record.finishes[number])));
  return lines.length ? make("ul", { className: "receipts", ariaLabel: "Fault receipts" }, ...lines) : make("p", { className: "notes" }, "No fault was planned.");
}

function receipt(entries, finish) {
  const [first] = entries;
  const carrier = entries.find((entry) => entry.call !== null);
  const where = `${first.effect} at ${first.point} of ${first.subtask}, attempt ${first.attempt}`;
  const stages = entries.map((entry) => entry.stage).filter((stage) => !ENDINGS.includes(stage));
  return `Fault ${first.fault}: ${where}: ${[...stages, finish].filter(Boolean).map(words).join(" → ")}${carrier ? ` (call ${carrier.call})` : ""}`;
}

function unsolved(outcome) {
  return UNSOLVED[outcome] ? [make("p", { className: "notes" }, UNSOLVED[outcome])] : [];
}

function idle(world) {
  return world?.is_idle ? [make("p", { className: "notes" }, "The agent did nothing: none of its calls changed the world.")] : [];
}

function accountBar(accounts) {
  const total = ACCOUNTS.reduce((sum, account) => sum + accounts[account], 0);
  const parts = ACCOUNTS.filter((account) => accounts[account] > 0);
  const said = parts.map((account) => `${words(account)} ${count(accounts[account])}`).join(", ") || "no tokens";
  const bar = make("div", { className: "accounts" }, ...parts.map((account) => {
    const part = make("span", { className: account });
    part.style.width = `${(100 * accounts[account]) / total}%`;
    return part;
  }));
  return make("div", {}, make("p", { className: "said" }, `Tokens by account: ${said}`), bar);
}

// A lane for each subtask, in the order of their first calls, and one for waits that can be seen.
function timeline(record, longest, reveal) {
  const names = [...new Set(record.calls.map(laneOf))];
  const lanes = names.map((name) => lane(name, record.calls.filter((call) => laneOf(call) === name).map((call) => callBar(call, longest, reveal))));
  const waits = record.waits.filter((wait) => wait.seconds > longest / 1000);
  if (waits.length) lanes.push(lane("waiting", waits.map((wait) => placed(make("span", { className: "bar waiting", title: `${wait.why}, ${seconds(wait.seconds)}` }), wait, longest))));
  const axis = make("div", { className: "axis" }, make("span", {}, "0"), make("span", {}, seconds(longest)));
  return make("div", { className: "timeline", role: "group", ariaLabel: "Timeline of calls by subtask" }, ...lanes, axis);
}

const laneOf = (call) => call.subtasks.join(" + ");

function lane(name, bars) {
  return make("div", { className: "lane" }, make("span", { className: "name", title: name }, name), make("div", { className: "track" }, ...bars));
}

function callBar(call, longest, reveal) {
  const said = `Call ${call.call}: ${laneOf(call)}, attempt ${call.attempt}, ${call.cause}, ${call.verdict}, ${words(call.account)}, ${seconds(call.seconds)}`;
  return placed(button("", () => reveal(call.call), { className: `bar ${call.account}`, title: said, ariaLabel: said }), call, longest);
}

function placed(bar, event, longest) {
  const share = (time) => `${longest ? (100 * time) / longest : 0}%`;
  bar.style.left = share(event.started);
  bar.style.width = share(event.seconds);
  return bar;
}

function reveal(details) {
  details.open = true;
  details.querySelector("summary").focus();
}

// A further entry in the browser's history, so that its Back button leads to what was shown before.
function visit(address) {
  if (location.hash !== address) history.pushState(null, "", address);
}
