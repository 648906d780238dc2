// Tables that sort: by their estimates, else by the first number of a text; what is unknown always stands last.

const UNKNOWN = /^(|–|unknown|n\/a.*|none solved.*)$/;
const FIRST_NUMBER = /^[-−+]?\d[\d,]*(\.\d+)?/;
const NUMBER = 0;
const TEXT = 1;
const NOTHING = 2;

function keyOf(cell) {
  const text = cell.textContent.trim();
  if (cell.dataset.value) return { kind: NUMBER, value: Number(cell.dataset.value) };
  if (UNKNOWN.test(text)) return { kind: NOTHING, value: 0 };
  const number = FIRST_NUMBER.exec(text);
  if (number) return { kind: NUMBER, value: Number(number[0].replace("−", "-").replaceAll(",", "")) };
  return { kind: TEXT, value: text };
}

// Numbers before texts before what is unknown, in both directions.
function compareKeys(one, other, direction) {
  if (one.kind !== other.kind) return one.kind - other.kind;
  const order = one.kind === TEXT ? one.value.localeCompare(other.value, "en", { numeric: true }) : one.value - other.value;
  return direction * order;
}

const NEXT = { undefined: "ascending", none: "ascending", ascending: "descending", descending: "none" };
const DIRECTION = { none: 0, ascending: 1, descending: -1 };

// A button into each header: ascending, descending, as it was. `reorder` is given the column and 1, -1 or 0.
function addSortButtons(headers, reorder) {
  for (const [column, header] of headers.entries()) {
    header.replaceChildren(
      button(header.textContent, () => {
        const next = NEXT[header.ariaSort ?? undefined];
        for (const other of headers) other.ariaSort = null;
        header.ariaSort = next;
        reorder(column, DIRECTION[next]);
      }, { className: "sort" }),
    );
  }
}

function makeSortable(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  addSortButtons([...table.tHead.rows[0].cells], (column, direction) => {
    const keyed = rows.map((row) => ({ row, key: keyOf(row.cells[column]) }));
    if (direction) keyed.sort((one, other) => compareKeys(one.key, other.key, direction));
    body.append(...keyed.map(({ row }) => row));
  });
}
