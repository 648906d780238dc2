// The list of trials: filtered, sorted, and a page of it at a time, so that 5,000 are as quick as 50.

const ROWS_SHOWN = 25;
const FILTERS = {
  scenario: "Scenario", instance: "Instance", architecture: "Architecture", plan: "Fault plan", model: "Model", outcome: "Outcome",
  repetition: "Repetition",
};
const NUMBERS = {
  tokens: "Tokens", retry_tokens: "Retry tokens", calls: "Calls", faults_delivered: "Faults delivered", latency_seconds: "Latency s",
};

class TrialList {
  // `trials`: column -> values; `open` is given the row of the trial to be shown.
  constructor(trials, names, open) {
    this.trials = trials;
    this.names = names;
    this.open = open;
    this.columns = [...Object.keys(FILTERS).filter((column) => this.values(column).length > 1), ...Object.keys(NUMBERS)];
    this.wanted = {};
    this.sort = { column: "id", direction: 0 };
    this.first = 0;
    this.body = make("tbody");
    this.status = make("p", { role: "status" });
    this.earlier = button("Earlier rows", () => this.turn(-ROWS_SHOWN));
    this.later = button("Later rows", () => this.turn(ROWS_SHOWN));
    this.update();
  }

  element() {
    const several = ([column]) => column !== "instance" || this.values(column).length > 1;
    const filters = Object.entries(FILTERS).filter(several).map(([column, label]) => this.filter(column, label));
    const headers = this.columns.map((column) => make("th", { scope: "col" }, FILTERS[column] ?? NUMBERS[column]));
    addSortButtons(headers, (column, direction) => this.update({ sort: { column: this.columns[column], direction } }));
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Trial"), ...headers));
    const table = make("table", {}, make("caption", {}, "Trials"), head, this.body);
    const region = make("div", { className: "scroll cards", tabIndex: 0, role: "region", ariaLabel: "Trials" }, table);
    const turning = make("div", { className: "controls" }, this.earlier, this.later, this.status);
    return make("div", {}, make("div", { className: "controls" }, ...filters), turning, region);
  }

  // The different values of a column, in the config's order where it names them. With one value it needs no room in the table.
  values(column) {
    return this.names[column] ?? [...new Set(this.trials[column])].sort(order);
  }

  filter(column, label) {
    const options = [["", "any"], ...this.values(column).map((value) => [`${value}`, `${value}`])];
    return choice(label, options, "", (value) => {
      this.wanted[column] = value;
      this.update();
    });
  }

  update(changed = {}) {
    Object.assign(this, changed);
    const wanted = Object.entries(this.wanted).filter(([, value]) => value !== "");
    const fits = (row) => wanted.every(([column, value]) => `${this.trials[column][row]}` === value);
    this.rows = [...this.trials.id.keys()].filter(fits);
    const { column, direction } = this.sort;
    const values = this.trials[column];
    if (direction) this.rows.sort((one, other) => direction * order(values[one], values[other]));
    this.first = 0;
    this.show();
  }

  turn(by) {
    this.first += by;
    this.show();
  }

  show() {
    const shown = this.rows.slice(this.first, this.first + ROWS_SHOWN);
    this.body.replaceChildren(...shown.map((row) => this.line(row)));
    this.earlier.disabled = this.first === 0;
    this.later.disabled = this.first + ROWS_SHOWN >= this.rows.length;
    const which = shown.length ? `; ${count(this.first + 1)} to ${count(this.first + shown.length)} shown` : "";
    this.status.textContent = `${count(this.rows.length)} of ${count(this.trials.id.length)} trials${which}`;
  }

  line(row) {
    const id = this.trials.id[row];
    const opening = button(id.slice(0, 8), () => this.open(row), { ariaLabel: `Open trial ${id}` });
    const cells = this.columns.map((column) => make("td", {}, shownValue(column, this.trials[column][row])));
    for (const [number, column] of this.columns.entries()) cells[number].dataset.label = FILTERS[column] ?? NUMBERS[column];
    return make("tr", {}, make("th", { scope: "row" }, opening), ...cells);
  }
}

function order(one, other) {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function shownValue(column, value) {
  if (typeof value !== "number") return `${value}`;
  return column === "latency_seconds" ? value.toFixed(2) : count(value);
}
