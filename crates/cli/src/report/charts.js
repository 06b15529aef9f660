// Elements, tooltips, and the drawings other than the timeline.

function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http:" + "//www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function showTip(event, lines) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...lines.map((line) => el("div", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 10 : event.clientX + 14;
  const top = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

const hideTip = () => (document.getElementById("tip").hidden = true);

const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas in CSS pixels on whatever screen. `draw(context, width, height)` runs when the size or the colours change.
function canvas(height, draw, attributes = {}) {
  const element = el("canvas", { style: `height:${height}px`, ...attributes });
  const redraw = () => {
    const width = element.clientWidth;
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    const tall = element.clientHeight;
    if (element.width !== Math.round(width * scale) || element.height !== Math.round(tall * scale)) {
      element.width = Math.round(width * scale);
      element.height = Math.round(tall * scale);
    }
    const context = element.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, tall);
    draw(context, width, tall);
  };
  new ResizeObserver(redraw).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return { element, redraw };
}

// Round numbers from `from` to `until`, about `count` of them.
function ticks(from, until, count) {
  const rough = Math.max((until - from) / Math.max(count, 1), 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const all = [];
  for (let at = Math.ceil(from / step) * step; at <= until; at += step) all.push(at);
  return all;
}

function legend(names) {
  const item = (name) =>
    el("span", { class: "key" }, el("i", { style: `background:${colourOf(name)}` }), plainName(name));
  return el("div", { class: "legend" }, [...names].sort(byOrder).map(item));
}

// Parts of a whole, as one bar. `width` is the bar's share of its place.
function stackedBar(time, all, width = 1, title = "") {
  const names = Object.keys(time).filter((name) => time[name] > 0).sort(byOrder);
  const part = (name) => {
    const share = (100 * time[name]) / all;
    const lines = [`${title}${plainName(name)}`, `${grouped(time[name])} warp cycles, ${percent(time[name], all)}`];
    const label = `${plainName(name)} ${share.toFixed(0)}%`;
    const text = share * width > 0.75 * label.length ? label : "";
    return el("span", {
      style: `width:${share}%;background:${colourOf(name)};color:${textOn(colourOf(name))}`,
      onmousemove: (event) => showTip(event, lines),
      onmouseleave: hideTip,
    }, text);
  };
  return el("div", { class: "stack", style: `width:${100 * width}%` }, names.map(part));
}

// Warps by category over time, all SMs together.
function overTimeChart(meta, sms) {
  const width = meta.categories.length;
  const count = Math.max(1, ...sms.map((intervals) => intervals.length / width));
  const sums = new Float64Array(count * width);
  for (const intervals of sms) intervals.forEach((cycles, at) => (sums[at] += cycles));
  const used = meta.categories.map((_, category) => {
    let sum = 0;
    for (let at = 0; at < count; at++) sum += sums[at * width + category];
    return sum;
  });
  const order = [...meta.categories.keys()].filter((at) => used[at] > 0);
  order.sort((a, b) => byOrder(meta.categories[a], meta.categories[b]));
  let most = 0;
  for (let at = 0; at < count; at++) {
    most = Math.max(most, order.reduce((sum, category) => sum + sums[at * width + category], 0));
  }
  const warps = most / meta.interval_cycles;
  const area = { left: 52, top: 8, right: 10, bottom: 24 };
  const { element } = canvas(230, (context, wide, tall) => {
    const [plotWidth, plotHeight] = [wide - area.left - area.right, tall - area.top - area.bottom];
    const x = (at) => area.left + (plotWidth * at) / count;
    const y = (value) => area.top + plotHeight * (1 - value / Math.max(most, 1));
    context.font = "12px system-ui, sans-serif";
    const base = new Float64Array(count);
    for (const category of order) {
      context.beginPath();
      context.moveTo(x(0), y(base[0]));
      for (let at = 0; at < count; at++) {
        const top = y(base[at] + sums[at * width + category]);
        context.lineTo(x(at), top);
        context.lineTo(x(at + 1), top);
      }
      for (let at = count - 1; at >= 0; at--) {
        context.lineTo(x(at + 1), y(base[at]));
        context.lineTo(x(at), y(base[at]));
        base[at] += sums[at * width + category];
      }
      context.fillStyle = colourOf(meta.categories[category]);
      context.fill();
    }
    context.fillStyle = styleOf("--faint");
    context.strokeStyle = styleOf("--line");
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of ticks(0, warps, 4)) {
      const at = Math.round(y(value * meta.interval_cycles)) + 0.5;
      context.fillText(short(value), area.left - 8, at);
      context.beginPath();
      context.moveTo(area.left - 4, at);
      context.lineTo(area.left, at);
      context.stroke();
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const cycle of ticks(0, count * meta.interval_cycles, plotWidth / 120)) {
      const at = x(cycle / meta.interval_cycles);
      if (at < wide - 30) context.fillText(short(cycle), at, tall - area.bottom + 6);
    }
  }, { role: "img", "aria-label": "warps by category over time" });
  element.addEventListener("mousemove", (event) => {
    const box = element.getBoundingClientRect();
    const share = (event.clientX - box.left - area.left) / (box.width - area.left - area.right);
    const at = Math.floor(share * count);
    if (at < 0 || at >= count) return hideTip();
    const of = (category) => sums[at * width + category];
    const shown = order.filter((category) => of(category) > 0).sort((a, b) => of(b) - of(a));
    const from = at * meta.interval_cycles;
    const mean = (category) => (of(category) / meta.interval_cycles).toFixed(2);
    const lines = shown.map((category) => `${mean(category)} warps ${plainName(meta.categories[category])}`);
    showTip(event, [`cycles ${grouped(from)} to ${grouped(from + meta.interval_cycles)}`, ...lines]);
  });
  element.addEventListener("mouseleave", hideTip);
  return el("div", {}, element, legend(order.map((at) => meta.categories[at])));
}

// Who waits for whom: lines that wait on the left, the lines whose writes they wait for on the right.
function waitGraph(waits) {
  const shown = waits.slice(0, 14);
  const writer = (wait) => wait.written_at ?? "not written by the kernel";
  const left = [...new Set(shown.map((wait) => wait.waits_at))];
  const right = [...new Set(shown.map(writer))];
  const [boxWidth, rowHeight, width] = [290, 54, 1100];
  const height = Math.max(left.length, right.length, shown.length * 0.62) * rowHeight + 8;
  const yOf = (list, name) => ((list.indexOf(name) + 0.5) * height) / list.length;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "graph", role: "img" });
  picture.append(svg("title", {}, "who waits for whom"));
  const most = Math.max(...shown.map((wait) => wait.wait.cycles), 1);
  const [from, to] = [boxWidth + 2, width - boxWidth - 10];
  const seen = new Map();
  shown.forEach((wait, number) => {
    // Arrows of one box start and end beside each other.
    const shift = (list, name, side) => {
      const key = side + name;
      const index = seen.get(key) ?? 0;
      seen.set(key, index + 1);
      const total = shown.filter((other) => (side === "l" ? other.waits_at : writer(other)) === name).length;
      return (index - (total - 1) / 2) * Math.min(10, 28 / total);
    };
    const y1 = yOf(left, wait.waits_at) + shift(left, wait.waits_at, "l");
    const y2 = yOf(right, writer(wait)) + shift(right, writer(wait), "r");
    const weight = 1.5 + 6 * Math.sqrt(wait.wait.cycles / most);
    const middle = (from + to) / 2;
    picture.append(svg("path", {
      d: `M${from},${y1} C${middle},${y1} ${middle},${y2} ${to},${y2}`,
      class: "edge", "stroke-width": weight,
    }));
    picture.append(svg("path", { d: `M${to + 9},${y2} l-10,-5 v10 z`, class: "head" }));
    const label = `${wait.memory}: ${grouped(wait.wait.count)} × ${mean(wait.wait)} cycles`;
    // Labels stand on their arrow, one after the other along it where several meet.
    const share = 0.3 + 0.4 * ((number % 3) / 2);
    const bend = (a, b, c, d) =>
      a * (1 - share) ** 3 + 3 * b * share * (1 - share) ** 2 + 3 * c * share ** 2 * (1 - share) + d * share ** 3;
    const at = { x: bend(from, middle, middle, to), y: bend(y1, y1, y2, y2) };
    picture.append(svg("text", { x: at.x, y: at.y - weight / 2 - 4, class: "edge-label" }, label));
  });
  const box = (name, x, y, kind) => {
    picture.append(svg("rect", { x, y: y - 17, width: boxWidth, height: 34, rx: 6, class: kind }));
    const label = svg("text", { x: x + boxWidth / 2, y: y + 4, class: "node" }, shortPlace(name, 34));
    label.append(svg("title", {}, name));
    picture.append(label);
  };
  left.forEach((name) => box(name, 1, yOf(left, name), "waiter"));
  right.forEach((name) => box(name, width - boxWidth - 1, yOf(right, name), "writer"));
  return picture;
}
