// The index of runs: every table sorts, and the first shows the rows that have all the words that were typed.

function addFilter(table) {
  const rows = [...table.tBodies[0].rows];
  const status = make("p", { role: "status" });
  const typed = make("input", { type: "search", size: 30 });
  const filter = () => {
    const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  typed.addEventListener("input", filter);
  const label = make("label", { className: "choice" }, make("span", {}, "Show rows with (a pack, a model, a date, a tag, yours)"), typed);
  document.getElementById("filters").replaceChildren(label, status);
  filter();
}

for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
addFilter(document.querySelector("#table-runs table"));
