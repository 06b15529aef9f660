// Categories of warp time: names as in the summary, and one colour each, from useful to wasted.
const CATEGORIES = [
  ["issued", "#2e9e5b"],
  ["not selected", "#8fd0a5"],
  ["pipe throttle", "#c3c94a"],
  ["execution dependency", "#66b8c9"],
  ["long scoreboard", "#3f7fd1"],
  ["short scoreboard", "#6fa8e8"],
  ["membar", "#8466c9"],
  ["no instruction", "#a9b8d8"],
  ["barrier", "#e09a2d"],
  ["warp sync", "#b98a5a"],
  ["sleeping", "#b7a9c9"],
  ["backed off", "#e88bb0"],
  ["lock queue", "#a35d86"],
  ["spinning", "#d63b3b"],
  ["drain", "#9a9a9a"],
];
const COLOUR = new Map(CATEGORIES);
const ORDER = new Map(CATEGORIES.map(([name], at) => [name, at]));
const OTHER_COLOUR = "#777777";

const plainName = (name) => name.replaceAll("_", " ");
const colourOf = (name) => COLOUR.get(plainName(name)) ?? OTHER_COLOUR;
const byOrder = (a, b) => (ORDER.get(plainName(a)) ?? 99) - (ORDER.get(plainName(b)) ?? 99);

// Words (locks and flags) take turns with these.
const WORD_COLOURS = ["#c2410c", "#7c3aed", "#0e7490", "#be185d", "#4d7c0f", "#b45309", "#1d4ed8", "#0f766e"];
const wordColour = (word) => WORD_COLOURS[word % WORD_COLOURS.length];

const rgb = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

// Text that is legible on a colour.
function textOn(colour) {
  const [r, g, b] = rgb(colour);
  return 0.3 * r + 0.59 * g + 0.11 * b > 135 ? "#15181d" : "#ffffff";
}

const grouped = (number) => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (part, all) => (all > 0 ? ((100 * part) / all).toFixed(1) : "0.0") + "%";
const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
// A place that is too long loses the begin of its path.
const shortPlace = (place, most) => (place.length > most ? "…" + place.slice(1 - most) : place);
// 1,234,000 cycles as 1.23 M, for axes and tiles.
function short(number) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(number) >= size) {
      return String(Number((number / size).toPrecision(3))) + " " + unit;
    }
  }
  return String(Number(number.toPrecision(3)));
}
