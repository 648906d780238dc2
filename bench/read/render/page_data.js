"use strict";

// What the page carries: JSON in compressed pieces, each unpacked when something in it is asked for.

const PIECES_KEPT = 16;
const unpacked = new Map(); // the id of a piece -> a promise of its JSON, the last used at the end

function piece(id) {
  const found = unpacked.get(id) ?? unpack(document.getElementById(id).textContent);
  unpacked.delete(id);
  unpacked.set(id, found);
  if (unpacked.size > PIECES_KEPT) unpacked.delete(unpacked.keys().next().value);
  return found;
}

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// One trial or text by its number. `firsts`: the numbers of the first items of the pieces of its kind.
async function item(kind, number, firsts) {
  const place = firsts.findLastIndex((first) => first <= number);
  return (await piece(`${kind}-${place}`))[number - firsts[place]];
}

// An element with these properties and children. A string becomes text, whatever is in it, never markup.
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function choice(label, options, chosen, onChange) {
  const select = make("select", { ariaLabel: label }, ...options.map(([value, text]) => make("option", { value }, text)));
  select.value = chosen;
  select.addEventListener("change", () => onChange(select.value));
  return make("label", { className: "choice" }, make("span", {}, label), select);
}

function button(text, onClick, properties = {}) {
  const made = make("button", { type: "button", ...properties }, text);
  made.addEventListener("click", onClick);
  return made;
}

// A list of terms; what is unknown or empty has no line.
function terms(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", {}, ...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, `${value}`)]));
}

const words = (name) => name.replaceAll("_", " ");
const count = (number) => number.toLocaleString("en-US");
const seconds = (number) => (number < 1 ? `${digits(1000 * number)} ms` : `${digits(number)} s`);
const digits = (number) => number.toLocaleString("en-US", { maximumSignificantDigits: 4 });
