// Puts the page together.

function section(id, title, ...children) {
  return el("section", { id }, el("h2", {}, title), children);
}

function tile(label, value, title) {
  return el("div", { class: "tile", title }, el("b", {}, value), el("span", {}, label));
}

function summary(run) {
  const { profile } = run;
  const tiles = [tile("cycles", short(run.cycles), `${grouped(run.cycles)} cycles`)];
  if (run.ipc != null) tiles.push(tile("IPC", run.ipc.toFixed(3), "warp instructions per cycle"));
  tiles.push(tile("SIMD efficiency", `${(100 * run.simd_efficiency).toFixed(1)}%`, "active lanes per instruction"));
  const spinning = profile?.time.spinning;
  if (spinning) tiles.push(tile("of warp time spins", percent(spinning, run.warp_cycles), ""));
  const failed = run.locks && run.locks.failed_intra + run.locks.failed_inter;
  if (failed) tiles.push(tile("tries at locks fail", short(failed), `${grouped(failed)} tries`));
  const findings = (profile?.verdict ?? []).map((finding) => el("p", { class: "finding" }, finding.text));
  const rows = run.summary.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
  return section("summary", "Summary",
    run.ended && el("pre", { class: "ended" }, run.ended),
    el("div", { class: "tiles" }, tiles),
    findings,
    profile && [
      el("h3", {}, "Warp time"), stackedBar(profile.time, run.warp_cycles), legend(Object.keys(profile.time)),
    ],
    el("details", { open: true }, el("summary", {}, "All numbers"), el("dl", {}, rows)));
}

function waitsTable(waits) {
  const columns = [
    ["waits", "the line that waits", false], ["for a write of", "the line whose write ends the wait", false],
    ["to", "", false], ["times", "", true], ["cycles", "on average", true], ["longest", "", true],
  ];
  const place = (name) => el("span", { title: name, class: "line" }, shortPlace(name, 44));
  const rows = waits.slice(0, 25).map(({ memory, waits_at, written_at, wait }) => ({
    cells: [place(waits_at), place(written_at ?? "not written by the kernel"), place(memory),
      grouped(wait.count), mean(wait), grouped(wait.longest_cycles)],
  }));
  return table(columns, rows);
}

const andMore = (shown, all, noun) =>
  all > shown && el("p", { class: "note" }, `and ${counted(all - shown, noun)} more; --profile --json has all`);

// The sections of a run. Packed data is read when the run is first shown.
async function runView(run, number) {
  const sections = [summary(run)];
  run.overTime ??= run.over_time && readOverTime(await unpacked(`over_time-${number}`), run.over_time);
  if (run.overTime) {
    sections.push(section("time", "Warps by state over time", overTimeChart(run.over_time, run.overTime),
      el("p", { class: "note" }, "All SMs together: how many warps are in each state, on average over an interval of ",
        `${counted(run.over_time.interval_cycles, "cycle")}.`)));
  }
  run.spans ??= run.timeline && readTimeline(await unpacked(`timeline-${number}`), run.timeline);
  let timeline = null;
  if (run.spans) {
    timeline = new Timeline(run.timeline, run.spans);
    const cut = run.timeline.cut != null &&
      el("p", { class: "note" }, `Cut at cycle ${grouped(run.timeline.cut)}: --trace-mb allows more, --trace-cycles `,
        "and --trace-sm choose what is shown.");
    sections.push(section("timeline", "Timeline", cut, timeline.element));
  }
  const { profile } = run;
  if (profile?.lines.length > 0) {
    const source = sourceView(run, run.warp_cycles);
    const jump = (event, place) => {
      if (!source.has(place)) event.preventDefault();
      source.show(place);
    };
    sections.push(section("lines", "Hottest lines", linesTable(profile, run.warp_cycles, jump),
      andMore(15, profile.counts.lines, "line")));
    if (run.sources.length > 0) sections.push(section("source", "Source", source.element));
    setTimeout(() => source.show(profile.lines[0].line));
  }
  if (profile?.words.length > 0) {
    sections.push(section("locks", "Locks and flags",
      el("p", { class: "note" }, "Times in cycles, on average."), wordsTable(profile),
      andMore(25, profile.counts.words, "word")));
  }
  if (profile?.waits.length > 0) {
    sections.push(section("waits", "Who waits for whom", waitGraph(profile.waits), waitsTable(profile.waits),
      andMore(25, profile.counts.waits, "pair")));
  }
  if (profile?.barriers.length > 0) sections.push(section("barriers", "Barriers", barriersTable(profile.barriers)));
  return { sections, timeline };
}

function compareView(compare, runs, choose) {
  const told = new Map(compare.legend.flatMap(([names, title]) => names.split(", ").map((name) => [name, title])));
  const columns = compare.head.map((name, at) => [name, told.get(name) ?? "", at > 0 && at < compare.head.length - 1]);
  const names = new Set();
  const most = Math.max(...runs.map((run) => run.warp_cycles ?? 0), 1);
  const rows = compare.rows.map((cells, at) => {
    const time = runs[at].profile?.time ?? {};
    Object.keys(time).forEach((name) => names.add(name));
    const link = el("a", { href: "#summary", onclick: () => choose(at) }, cells[0]);
    return { cells: [link, ...cells.slice(1)] };
  });
  const bars = runs.map((run) => el("div", { class: "pair" }, el("b", {}, run.name),
    stackedBar(run.profile?.time ?? {}, run.warp_cycles, (run.warp_cycles ?? 0) / most)));
  return section("compare", compare.title, table(columns, rows),
    el("h3", {}, "Warp time"), bars, legend(names));
}

function navigation() {
  const links = [...document.querySelectorAll("section[id]")].map((part) =>
    el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  document.querySelector("nav").replaceChildren(...links);
}

async function showPage() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const place = el("div");
  const chooser = el("div", { class: "chooser" });
  const choose = async (number) => {
    const { sections, timeline } = await runView(data.runs[number], number);
    place.replaceChildren(...sections);
    [...chooser.children].forEach((button, at) => button.setAttribute("aria-pressed", String(at === number)));
    window.timeline = timeline;
    navigation();
  };
  main.append(el("header", {}, el("h1", {}, data.title), el("nav", {})));
  if (data.diff) main.append(...diffView(data.diff).filter((part) => part));
  if (data.compare) main.append(compareView(data.compare, data.runs, choose));
  if (data.runs.length > 1) {
    const button = (run, at) => el("button", { type: "button", onclick: () => choose(at) }, run.name);
    chooser.append(...data.runs.map(button));
    main.append(el("div", { class: "choose" }, el("span", {}, "Shown below: "), chooser));
  }
  main.append(place, el("footer", {}, `Warploom ${data.version}`));
  if (data.runs.length > 0) await choose(0);
  else navigation();
  document.body.dataset.ready = "true";
}

showPage().catch((error) => {
  document.body.dataset.ready = "failed";
  document.getElementById("main").append(el("pre", { class: "ended" }, `This page cannot be shown: ${error.message}`));
  throw error;
});
