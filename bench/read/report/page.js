// The page comes to life. Without this it can still be read: only sorting and the trials are missing.

async function showTrials() {
  const index = await piece("index");
  const region = document.getElementById("trials");
  let opener = null; // the button that the focus goes back to
  const view = new TrialView(index, document.getElementById("trial"), () => (opener?.isConnected ? opener : region.querySelector("select")).focus());
  const list = new TrialList(index.trials, index.names, (row) => {
    opener = document.activeElement;
    return view.open(row);
  });
  document.getElementById("list").replaceChildren(list.element());
  const follow = () => openNamed(index.trials.id, view);
  window.addEventListener("hashchange", follow);
  await follow();
}

// #trial-ID or #trial-ID+ID in the address opens these trials; an address of the page or of its list shows none.
async function openNamed(ids, view) {
  const named = /^#trial-([0-9A-Za-z_-]+)(?:\+([0-9A-Za-z_-]+))?$/.exec(decodeURIComponent(location.hash));
  const row = named ? ids.indexOf(named[1]) : -1;
  if (["", "#trials"].includes(location.hash)) view.hide();
  if (row < 0) return;
  const beside = ids.indexOf(named[2]);
  await view.open(row, named[2] ? beside : -1);
}

for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
if (document.getElementById("index")) showTrials();
