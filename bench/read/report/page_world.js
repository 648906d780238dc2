// What a trial did to its world: the damage, then a band for each life of the agent, a line for each step.

const NOT_TOLD = "cannot be told";

function worldOf(world) {
  if (!world) return "";
  const shown = make("div", { className: "world" });
  const bands = world.steps.length ? lives(world.steps) : [];
  const filters = make("div", { className: "controls" },
    toggle("Reads", true, (on) => shown.classList.toggle("no-reads", !on)),
    toggle("Notes in its store", false, (on) => shown.classList.toggle("no-stored", !on)),
  );
  shown.classList.add("no-stored");
  shown.append(
    make("h4", {}, "The world"),
    damageOf(world),
    world.lacking ? make("p", { className: "notes" }, `The rows that changed are not shown: ${world.lacking}.`) : "",
    filters, ...bands,
  );
  return shown;
}

function toggle(label, on, change) {
  const box = make("input", { type: "checkbox", checked: on });
  box.addEventListener("change", () => change(box.checked));
  return make("label", {}, box, ` ${label}`);
}

// Each kind of damage with the effects and entries that it was counted from; nothing is as much worth saying.
function damageOf(world) {
  const kinds = Object.entries(world.damage).filter(([, number]) => number);
  const line = ([kind, number]) => {
    const items = world.harms.filter((harm) => harm.kind === kind).map((harm) => {
      const entries = harm.entries.length ? `entries ${harm.entries.join(", ")}` : "no entry";
      return make("li", {}, `${harm.effect}${harm.times > 1 ? `, ${harm.times} times` : ""}: ${entries}`);
    });
    const recount = world.recount[kind];
    const second = recount === null || recount === undefined ? `from the tables it ${NOT_TOLD}` : `counted from the tables ${recount}`;
    return make("details", { open: kinds.length < 4 }, make("summary", {}, make("strong", { className: "harm" }, `${kind} ${number}`), ` (${second})`), make("ul", {}, ...items));
  };
  return make("div", { className: "damage" }, ...(kinds.length ? kinds.map(line) : [make("p", {}, "No damage: each effect that was owed happened once.")]));
}

function lives(steps) {
  const bands = [];
  for (const step of steps) {
    if (!bands.length || bands.at(-1).life !== step.life) bands.push({ life: step.life, steps: [] });
    bands.at(-1).steps.push(step);
  }
  return bands.map(({ life, steps: own }) => make("section", { className: `life${life % 2 ? "" : " even"}`, ariaLabel: `Life ${life}` },
    make("h5", {}, `Life ${life}`), make("ol", {}, ...own.map(worldStep))));
}

function worldStep(step) {
  const read = step.kind === "call" && step.title.endsWith("(read)") ? " read" : "";
  const when = step.day === undefined ? "" : `day ${step.day} ${clock(step.minute ?? 0)}`;
  const badges = (step.harms ?? []).map((kind) => make("strong", { className: "harm" }, kind));
  const changed = (step.changes ?? []).length;
  const head = make("summary", {},
    make("span", { className: "when" }, when), " ",
    make("span", { className: "what" }, step.kind === "call" ? "" : `${step.kind === "stored" ? "wrote to its store" : step.kind} `), make("strong", {}, step.title), " ",
    step.how && step.kind === "call" ? make("span", { className: `how is-${step.how}` }, step.how) : "", " ",
    changed ? `${changed} row${changed > 1 ? "s" : ""} ` : "", ...badges,
  );
  const rows = changed ? [make("pre", { className: "rows" }, ...step.changes.map((line) => make("span", { className: "row" }, `${line}\n`)))] : [];
  const pairs = [...(step.entry ? [["Entry", step.entry]] : []), ...(step.details ?? [])];
  const details = make("details", { className: `step is-${step.kind}` }, head, terms(pairs), ...rows);
  return make("li", { className: `is-${step.kind}${read}` }, details);
}

const clock = (minute) => `${String(Math.floor(minute / 60)).padStart(2, "0")}:${String(minute % 60).padStart(2, "0")}`;
