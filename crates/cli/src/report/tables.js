// Tables of a run: lines, source, locks and flags, barriers.

// Cells that are numbers are aligned to the right. `columns` are [head, title, isNumber].
function table(columns, rows, attributes = {}) {
  const head = columns.map(([name, title, number]) =>
    el("th", { class: number ? "n" : "", title, scope: "col" }, name));
  const cell = (content, at) => el("td", { class: columns[at][2] ? "n" : "" }, content);
  const body = rows.map(({ cells, more }) => [
    el("tr", {}, cells.map(cell)),
    more && el("tr", { class: "more" }, el("td", { colspan: columns.length }, more)),
  ]);
  const inner = el("table", attributes, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  return el("div", {}, el("div", { class: "scroll" }, inner), meanings(columns));
}

// What the columns mean, below the table.
function meanings(columns) {
  const told = columns.filter(([name, title]) => name && title);
  return told.length > 0 && el("p", { class: "meanings" },
    told.flatMap(([name, title], at) => [at > 0 ? "; " : "", el("b", {}, name), ` ${title}`]));
}

const ratio = (part, all) => (all > 0 ? (part / all).toFixed(1) : "–");
const mean = (span) => (span.count > 0 ? grouped(Math.floor(span.cycles / span.count)) : "–");

function linesTable(profile, all, jump) {
  const shown = profile.lines.slice(0, 15);
  const most = shown[0]?.warp_cycles ?? 1;
  const columns = [
    ["time", "part of all warp time", true],
    ["", "by category", false],
    ["line", "the source line; if its file was not found, the instruction with the most time", false],
    ["executions", "times that a warp issued an instruction of the line", true],
    ["threads/warp", "active threads per warp, on average", true],
    ["transactions", "per memory access of a warp", true],
    ["latency", "cycles of an access, from issue to write-back, on average", true],
    ["failed polls", "lanes that have to read again what they wait for", true],
  ];
  const rows = shown.map((line) => ({
    cells: [
      percent(line.warp_cycles, all),
      el("div", { class: "bar" }, stackedBar(line.time, line.warp_cycles, line.warp_cycles / most, `${line.line}: `)),
      el("div", { class: "place" },
        el("a", { href: "#source", title: line.line, onclick: (event) => jump(event, line.line) },
          shortPlace(line.line, 60)),
        el("code", { title: line.text }, line.source ?? line.text)),
      grouped(line.executions),
      ratio(line.thread_executions, line.executions),
      ratio(line.transactions, line.latency.count),
      mean(line.latency),
      line.polls > 0 ? grouped(line.failed_polls) : "–",
    ],
  }));
  return table(columns, rows, { class: "lines" });
}

// The listings, each line with its part of the time. Returns the element and a function that shows a line.
function sourceView(run, all) {
  const byLine = new Map(run.profile.lines.map((line) => [line.line, line]));
  const most = run.profile.lines[0]?.warp_cycles ?? 1;
  const places = new Map();
  const listing = ({ file, lines }) => {
    let last = null;
    const rows = lines.flatMap(([number, text]) => {
      const line = byLine.get(`${file}:${number}`);
      const gap = last != null && number > last + 1;
      last = number;
      const row = el("div", { class: line ? "code hot" : "code" },
        el("span", { class: "heat" }, line ? stackedBar(line.time, line.warp_cycles, line.warp_cycles / most) : ""),
        el("span", { class: "share" }, line ? percent(line.warp_cycles, all) : ""),
        el("span", { class: "number" }, String(number)),
        el("span", { class: "text" }, text));
      if (line) places.set(line.line, row);
      return gap ? [el("div", { class: "gap" }, "⋯"), row] : [row];
    });
    return el("div", { class: "listing" }, el("h4", {}, file), el("div", { class: "source" }, rows));
  };
  const element = el("div", {}, run.sources.map(listing));
  const show = (place) => {
    const row = places.get(place);
    if (!row) return;
    const box = row.closest(".source");
    const down = row.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTop += down - box.clientHeight / 2;
    document.querySelectorAll(".code.shown").forEach((other) => other.classList.remove("shown"));
    row.classList.add("shown");
  };
  return { element, show, has: (place) => places.has(place) };
}

const linesOf = (what, lines) => {
  const first = lines.slice(0, 2).map(([line]) => line).join(", ");
  return lines.length > 0 ? `${what} ${first}` : null;
};

function wordsTable(profile) {
  const shown = profile.words.slice(0, 25);
  const waited = (word) => word.wait.cycles + word.satisfied.cycles;
  const most = Math.max(...shown.map(waited), 1);
  const columns = [
    ["word", "buffer or variable, and the byte offset", false],
    ["waited in all", "cycles that threads waited for it", true],
    ["", "", false],
    ["taken", "tries that took it", true],
    ["intra-warp", "tries that failed: a thread of the same warp took it last", true],
    ["inter-warp", "tries that failed: a thread of another warp took it last", true],
    ["wait", "from the first try to the acquisition, on average", true],
    ["hold", "from there to the release, on average", true],
    ["hand-off", "from a release to the next acquisition, on average", true],
    ["queue", "most threads that waited at a time", true],
  ];
  const rows = shown.map((word) => {
    const longest = word.longest_waits[0];
    const parts = [
      word.memories > 1 ? `in ${counted(word.memories, "CTA")}` : null,
      linesOf("taken at", word.taken_at),
      linesOf("released at", word.released_at),
      word.taken_at.length === 0 ? linesOf("failed at", word.failed_at) : null,
      longest ? `${longest[1]} waited ${counted(longest[0], "cycle")}` : null,
    ];
    return {
      cells: [
        el("strong", {}, word.word),
        grouped(waited(word)),
        el("div", { class: "bar" }, el("div", { class: "plain", style: `width:${(100 * waited(word)) / most}%` })),
        grouped(word.acquired), grouped(word.failed_intra), grouped(word.failed_inter),
        mean(word.acquired > 0 ? word.wait : word.satisfied), mean(word.hold), mean(word.hand_off),
        grouped(word.longest_queue),
      ],
      more: parts.filter((part) => part).join("; "),
    };
  });
  return table(columns, rows, { class: "words" });
}

function barriersTable(barriers) {
  const columns = [
    ["barrier", "", false],
    ["phases", "", true],
    ["skew", "from the first arrival to the last, on average", true],
    ["longest", "", true],
  ];
  const rows = barriers.slice(0, 15).map(({ line, skew }) => ({
    cells: [line, grouped(skew.count), mean(skew), grouped(skew.longest_cycles)],
  }));
  return table(columns, rows);
}

// Two runs: numbers, categories, lines, words.
function diffView(diff) {
  const all = diff.categories.reduce((sum, pair) => sum + pair.a, 0);
  const most = Math.max(all, diff.categories.reduce((sum, pair) => sum + pair.b, 0), 1);
  const time = (run) => Object.fromEntries(diff.categories.map((pair) => [pair.name, pair[run]]));
  const bar = (run) => {
    const sum = Object.values(time(run)).reduce((a, b) => a + b, 0);
    return el("div", { class: "pair" }, el("b", {}, run.toUpperCase()), stackedBar(time(run), sum, sum / most));
  };
  const value = (number) =>
    number == null ? "–" : Number.isInteger(number) || number >= 1000 ? grouped(number) : number.toPrecision(4);
  const relative = (a, b) => (a > 0 && b != null ? `${b >= a ? "+" : ""}${((100 * b) / a - 100).toFixed(1)}%` : "");
  const change = (a, b) => {
    const text = `${b >= a ? "+" : "−"}${percent(Math.abs(b - a), all)}`;
    return el("span", { class: b > a ? "worse" : b < a ? "better" : "" }, text);
  };
  const numbers = table(
    [["", "", false], ["A", diff.a.file, true], ["B", diff.b.file, true], ["change", "of A", true]],
    diff.numbers.map(({ name, a, b }) => ({ cells: [name, value(a), value(b), relative(a, b)] })));
  // Less time to the left, more to the right.
  const span = (pairs, of) => Math.max(1, ...pairs.map((pair) => Math.abs(of(pair.b) - of(pair.a))));
  const swing = (a, b, most) => {
    const share = (50 * Math.abs(b - a)) / most;
    const left = b < a ? 50 - share : 50;
    const kind = b < a ? "less" : "greater";
    return el("div", { class: "swing" }, el("i", { class: kind, style: `left:${left}%;width:${share}%` }));
  };
  const timed = (line) => line?.warp_cycles ?? 0;
  // What would be shown as 0.0 % is left out.
  const lines = diff.lines.filter(({ a, b }) => Math.abs(timed(b) - timed(a)) >= all / 2000).slice(0, 25);
  const widest = span(lines, timed);
  const placeOf = ({ a, b }) => {
    const [old, now] = [a ?? b, b ?? a];
    const note = !a ? "only in B" : !b ? "only in A" : old.line !== now.line ? `now ${now.line}` : "";
    const says = (line) => line.source ?? line.text;
    const text = says(old) === says(now) ? says(now) : `${says(old)} → ${says(now)}`;
    return el("div", { class: "place" }, el("span", {}, old.line, note && el("em", {}, ` ${note}`)),
      el("code", {}, text));
  };
  const linesTable = table(
    [["change", "part of A's warp time", true], ["", "less, or more time", false], ["line", "", false],
      ["A", "warp cycles", true], ["B", "warp cycles", true]],
    lines.map((pair) => ({
      cells: [change(timed(pair.a), timed(pair.b)), swing(timed(pair.a), timed(pair.b), widest), placeOf(pair),
        grouped(timed(pair.a)), grouped(timed(pair.b))],
    })), { class: "lines" });
  const waited = (word) => (word ? word.wait.cycles + word.satisfied.cycles : 0);
  const words = diff.words.slice(0, 25);
  const widestWord = span(words, waited);
  const both = (pair, of) => {
    const cell = (word) => el("div", {}, word ? of(word) : "–");
    return el("div", { class: "both" }, cell(pair.a), cell(pair.b));
  };
  const wordsTable = table(
    [["word", "", false], ["", "less, or more waiting", false], ["", "", false],
      ["waited in all", "cycles that threads waited for it", true], ["taken", "", true],
      ["failed", "tries that failed", true], ["wait", "on average", true], ["hold", "on average", true],
      ["hand-off", "on average", true], ["queue", "most threads that waited at a time", true]],
    words.map((pair) => ({
      cells: [
        el("strong", {}, pair.name), swing(waited(pair.a), waited(pair.b), widestWord),
        el("div", { class: "both" }, el("div", {}, "A"), el("div", {}, "B")),
        both(pair, (word) => grouped(waited(word))), both(pair, (word) => grouped(word.acquired)),
        both(pair, (word) => grouped(word.failed_intra + word.failed_inter)),
        both(pair, (word) => mean(word.acquired > 0 ? word.wait : word.satisfied)),
        both(pair, (word) => mean(word.hold)), both(pair, (word) => mean(word.hand_off)),
        both(pair, (word) => grouped(word.longest_queue)),
      ],
    })), { class: "words" });
  const names = diff.categories.map((pair) => pair.name);
  const categories = table(
    [["warp time", "", false], ["A", "warp cycles", true], ["B", "warp cycles", true],
      ["change", "part of A's warp time", true]],
    diff.categories.map(({ name, a, b }) => ({
      cells: [el("span", { class: "key" }, el("i", { style: `background:${colourOf(name)}` }), name),
        grouped(a), grouped(b), change(a, b)],
    })));
  return [
    section("summary", "Two runs",
      el("dl", {}, el("dt", {}, "A"), el("dd", {}, `${diff.a.file}: ${diff.a.title}`),
        el("dt", {}, "B"), el("dd", {}, `${diff.b.file}: ${diff.b.title}`)),
      bar("a"), bar("b"), legend(names), el("div", { class: "columns" }, numbers, categories)),
    section("lines", "Lines, what changed most first",
      lines.length > 0 ? linesTable : el("p", {}, "No line takes more or less time.")),
    words.length > 0 && section("locks", "Locks and flags, what changed most first", wordsTable),
  ];
}
