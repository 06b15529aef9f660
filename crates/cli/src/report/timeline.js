// The timeline: a row for every SM, and when it is open a row for each of its warp slots.
//
// Only rows in view are drawn. pixels.js does that; this is the rest: rows, axis, arrows, and what the user does.

const AXIS = 24;
const SM_ROW = 30;
const SLOT_ROW = 17;
const GUTTER = 96;
// Arrows are drawn when at most so many are in view, and thin if they are many.
const MOST_ARROWS = 400;
const MANY_ARROWS = 40;
// The same for ends of warps in a row.
const MOST_ENDS = 60;

class Timeline {
  constructor(meta, data) {
    this.meta = meta;
    this.sms = data.sms.filter((sm) => sm.slots.length > 0);
    this.idle = data.sms.length - this.sms.length;
    this.handOffs = data.handOffs;
    this.from = meta.from;
    this.until = Math.max(meta.until, meta.from + 1);
    this.view = [this.from, this.until];
    this.spans = 0;
    for (const sm of this.sms) {
      sm.open = false;
      sm.used = meta.states.map((_, at) => at).filter((at) =>
        sm.slots.some((slot) => slot.states.state.includes(at)));
      sm.spans = sm.slots.reduce((sum, slot) => sum + slot.states.length, 0);
      this.spans += sm.spans;
    }
    // Few SMs are shown with their warps; of many, first the overview.
    if (this.sms.length <= 4) this.sms.forEach((sm) => (sm.open = true));
    this.pixels = new Pixels(this.from, this.until, meta.states, this.sms.length);
    this.build();
    this.layOut();
  }

  build() {
    const made = canvas(520, (context, width, height) => this.draw(context, width, height), { tabindex: "0" });
    this.canvas = made.element;
    this.redraw = () => {
      if (this.scheduled) return;
      this.scheduled = true;
      requestAnimationFrame(() => {
        this.scheduled = false;
        made.redraw();
      });
    };
    this.now = made.redraw;
    this.spacer = el("div");
    this.box = el("div", { class: "timeline", onscroll: this.redraw }, this.canvas, this.spacer);
    const button = (text, title, onclick) => el("button", { type: "button", title, onclick }, text);
    const allOpen = (open) => () => {
      this.sms.forEach((sm) => (sm.open = open));
      this.layOut();
    };
    const bar = el("div", { class: "tools" },
      button("+", "zoom in (W)", () => this.zoom(0.5)),
      button("−", "zoom out (S)", () => this.zoom(2)),
      button("all", "show all cycles (0)", () => this.show(this.from, this.until)),
      button("open all SMs", "", allOpen(true)),
      button("close all SMs", "", allOpen(false)),
      el("span", { class: "hint" },
        "click an SM to open it; drag to move; Ctrl + wheel or W, S to zoom, A, D to move; ",
        "Shift + drag to zoom into a part"));
    const names = this.meta.states.filter((_, at) => this.sms.some((sm) => sm.used.includes(at)));
    this.element = el("div", {}, bar, this.box, legend([...names, "spinning"]),
      this.idle > 0 && el("p", { class: "note" }, `${counted(this.idle, "SM")} without a warp left out.`),
      el("p", { class: "note" },
        "An SM: its warps, stacked by state; the red line is how many of them spin. ",
        "A slot: the state of its warp; above it, red while the warp spins; below it, the locks its threads hold. ",
        "Arrows lead from a release to the next acquisition, if that thread had waited; zoom in until they are few."));
    this.listen();
  }

  // Rows from top to bottom, with their height.
  layOut() {
    this.rows = [];
    this.smRows = [];
    let top = 0;
    const add = (row, height) => {
      this.rows.push({ ...row, top, height });
      top += height;
    };
    for (const sm of this.sms) {
      this.smRows[sm.sm] = this.rows.length;
      add({ sm }, SM_ROW);
      if (!sm.open) continue;
      sm.slots.forEach((slot, number) => add({ sm, slot, number }, SLOT_ROW));
    }
    this.total = top;
    const height = Math.min(560, top + AXIS + 2);
    this.box.style.height = `${height}px`;
    this.canvas.style.height = `${height - 2}px`;
    this.spacer.style.height = `${Math.max(0, top + AXIS - height)}px`;
    this.redraw();
  }

  show(from, until) {
    const least = 20;
    const length = Math.max(least, Math.min(until - from, this.until - this.from));
    const start = Math.max(this.from, Math.min(from, this.until - length));
    this.view = [start, Math.min(start + length, Math.max(this.until, start + least))];
    this.redraw();
  }

  // Zooms around a time, or the middle.
  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    const [from, until] = this.view;
    this.show(around - (around - from) * factor, around + (until - around) * factor);
  }

  timeAt(x) {
    const width = this.canvas.clientWidth - GUTTER;
    return this.view[0] + ((x - GUTTER) / width) * (this.view[1] - this.view[0]);
  }

  xAt(time) {
    const width = this.canvas.clientWidth - GUTTER;
    return GUTTER + ((time - this.view[0]) / (this.view[1] - this.view[0])) * width;
  }

  draw(context, fullWidth, height) {
    const began = performance.now();
    // Asking for a style is slow.
    const style = getComputedStyle(document.documentElement);
    const named = (name) => [name, style.getPropertyValue(`--${name}`).trim()];
    this.style = Object.fromEntries(["page", "panel", "text", "faint", "line", "select"].map(named));
    const width = Math.max(1, Math.floor(fullWidth - GUTTER));
    const scroll = this.box.scrollTop;
    const shown = this.rows.filter((row) => row.top + row.height > scroll && row.top - scroll < height - AXIS);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, fullWidth, height - AXIS);
    context.clip();
    context.imageSmoothingEnabled = false;
    context.fillStyle = this.style.panel;
    const { pixels } = this;
    pixels.begin(this.view, width, Math.max(1, Math.ceil(height - AXIS)));
    for (const { sm, slot, top } of shown) {
      const y = Math.round(top - scroll);
      if (slot) {
        pixels.drawSlot(slot, y + 3, SLOT_ROW - 8);
        pixels.drawStrip(slot.spins, this.firstOver(slot.spins, this.view[0]), y, 3, null);
        pixels.drawStrip(slot.holds, this.firstOver(slot.holds, this.view[0]), y + SLOT_ROW - 5, 4, pixels.words);
      } else {
        context.fillRect(GUTTER, AXIS + y + 3, width, SM_ROW - 6);
        pixels.drawSm(sm, y + 3, SM_ROW - 6);
      }
    }
    pixels.show(context, GUTTER, AXIS);
    shown.filter((row) => row.slot).forEach((row) =>
      this.drawWarpEnds(context, row.slot.warps, AXIS + row.top - scroll));
    this.drawArrows(context, scroll, height);
    this.drawLabels(context, shown, scroll);
    context.restore();
    this.drawAxis(context, fullWidth, height);
    if (this.selected) {
      context.fillStyle = this.style.select;
      const [a, b] = this.selected;
      context.fillRect(Math.min(a, b), AXIS, Math.abs(b - a), height);
    }
    this.drawTime = performance.now() - began;
  }

  // The first span that may reach into the view. Holds may overlap, so some before it are looked at too.
  firstOver(spans, time) {
    let at = countUntil(spans, time) - 1;
    for (let looked = 0; at > 0 && looked < 64; looked++) at--;
    return Math.max(0, at);
  }

  drawWarpEnds(context, warps, top) {
    const end = countUntil(warps, this.view[1]);
    const first = Math.max(0, countUntil(warps, this.view[0]) - 1);
    if (end - first > MOST_ENDS) return;
    context.fillStyle = this.style.text;
    for (let at = first; at < end; at++) {
      const x = this.xAt(warps.from[at]);
      if (x >= GUTTER) context.fillRect(Math.round(x), top + 1, 1, SLOT_ROW - 3);
    }
  }

  drawLabels(context, shown, scroll) {
    context.fillStyle = this.style.page;
    context.fillRect(0, AXIS, GUTTER - 2, this.canvas.clientHeight);
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const row of shown) {
      const middle = AXIS + row.top - scroll + row.height / 2;
      context.font = row.slot ? "11px system-ui, sans-serif" : "600 12.5px system-ui, sans-serif";
      context.fillStyle = row.slot ? this.style.faint : this.style.text;
      const text = row.slot ? `slot ${row.number}` : `${row.sm.open ? "▾" : "▸"} SM ${row.sm.sm}`;
      context.fillText(text, row.slot ? 28 : 8, middle);
    }
  }

  drawAxis(context, width, height) {
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.strokeStyle = this.style.line;
    context.fillStyle = this.style.faint;
    const [from, until] = this.view;
    for (const cycle of ticks(from, until, (width - GUTTER) / 130)) {
      const x = Math.round(this.xAt(cycle)) + 0.5;
      context.globalAlpha = 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 4);
      context.lineTo(x, height);
      context.stroke();
      context.globalAlpha = 1;
      if (x < width - 40 && x > GUTTER + 20) context.fillText(grouped(cycle), x, AXIS / 2);
    }
    context.textAlign = "left";
    context.fillText("cycle", 8, AXIS / 2);
  }

  // The middle of a warp's row; of a closed SM, that of the SM.
  yOf(sm, slot, scroll) {
    const own = this.smRows[sm];
    const row = this.rows[this.rows[own]?.sm.open ? own + 1 + slot : own];
    return row ? AXIS + row.top - scroll + row.height - (row.slot ? 4 : 8) : null;
  }

  drawArrows(context, scroll, height) {
    const [from, until] = this.view;
    const visible = [];
    let at = this.handOffsFrom(from);
    for (; at < this.handOffs.length && visible.length <= MOST_ARROWS; at++) {
      const arrow = this.handOffs[at];
      if (arrow.released > until) continue;
      if (arrow.taken > until && arrow.released < from) continue;
      if (arrow.taken > until && arrow.released > until) break;
      const [y1, y2] = [this.yOf(arrow.fromSm, arrow.fromSlot, scroll), this.yOf(arrow.toSm, arrow.toSlot, scroll)];
      const isSeen = (y) => y > AXIS && y < height;
      if (y1 == null || y2 == null || !(isSeen(y1) || isSeen(y2))) continue;
      visible.push([arrow, y1, y2]);
      if (arrow.taken > until + (until - from)) break;
    }
    this.arrows = visible.length <= MOST_ARROWS ? visible.length : 0;
    if (visible.length > MOST_ARROWS) return;
    const many = visible.length > MANY_ARROWS;
    const wide = many ? 1 : 2;
    for (const [arrow, y1, y2] of visible) {
      const [x1, x2] = [this.xAt(arrow.released), this.xAt(arrow.taken)];
      const bend = Math.max(12, Math.min(60, (x2 - x1) / 2));
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
      // Its colour may be that of the rows below it.
      context.strokeStyle = this.style.page;
      context.lineWidth = wide + 2;
      context.stroke();
      context.strokeStyle = context.fillStyle = wordColour(arrow.word);
      context.lineWidth = wide;
      context.stroke();
      context.beginPath();
      context.moveTo(x2 + 1, y2);
      context.lineTo(x2 - 6, y2 - 4);
      context.lineTo(x2 - 6, y2 + 4);
      context.fill();
    }
    context.lineWidth = 1;
  }

  // The first hand-off that ends at or after a time; they are sorted by their end.
  handOffsFrom(time) {
    let [low, high] = [0, this.handOffs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.handOffs[middle].taken < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  rowAt(y) {
    const place = y - AXIS + this.box.scrollTop;
    return y < AXIS ? null : this.rows.find((row) => place >= row.top && place < row.top + row.height);
  }

  // What is at a place, in words.
  describe(row, time) {
    const cycle = Math.floor(time);
    if (!row.slot) {
      const warps = row.sm.slots.filter((slot) => spanAt(slot.states, time) >= 0).length;
      const counts = new Map();
      for (const slot of row.sm.slots) {
        const at = spanAt(slot.states, time);
        if (at < 0) continue;
        const name = this.meta.states[slot.states.state[at]];
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      const states = [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} ${name}`);
      return [`SM ${row.sm.sm}, cycle ${grouped(cycle)}: ${counted(warps, "warp")}`, ...states];
    }
    const { warps, states, spins, holds } = row.slot;
    const lines = [];
    const warp = spanAt(warps, time);
    if (warp >= 0) {
      const cta = [warps.x, warps.y, warps.z].map((part) => part[warp]).join(",");
      lines.push(`CTA (${cta}) warp ${warps.warp[warp]} on SM ${row.sm.sm}, slot ${row.number}`);
    }
    const state = spanAt(states, time);
    if (state >= 0) {
      const [from, until] = [states.from[state], states.until[state]];
      const name = this.meta.states[states.state[state]];
      lines.push(`${name}: cycles ${grouped(from)} to ${grouped(until)} (${grouped(until - from)})`);
      const place = this.meta.places[states.pc[state] - 1];
      if (place) lines.push(place);
    }
    const spin = spanAt(spins, time);
    if (spin >= 0) {
      const length = grouped(spins.until[spin] - spins.from[spin]);
      lines.push(`spins on ${this.meta.words[spins.word[spin]]} for ${length} cycles`);
    }
    const end = countUntil(holds, time);
    for (let at = this.firstOver(holds, time); at < end; at++) {
      if (holds.until[at] <= time) continue;
      const length = grouped(holds.until[at] - holds.from[at]);
      lines.push(`lane ${holds.lane[at]} holds ${this.meta.words[holds.word[at]]} for ${length} cycles`);
    }
    return lines.length > 0 ? lines.slice(0, 12) : [`cycle ${grouped(cycle)}: no warp`];
  }

  listen() {
    const target = this.canvas;
    const place = (event) => {
      const box = target.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    target.addEventListener("wheel", (event) => {
      const [x] = place(event);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-0.6, Math.min(0.6, event.deltaY / 300))), this.timeAt(x));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.move(event.deltaX / (target.clientWidth - GUTTER));
      }
    }, { passive: false });
    let drag = null;
    target.addEventListener("pointerdown", (event) => {
      const [x, y] = place(event);
      drag = { x, y, view: [...this.view], moved: false, part: event.shiftKey };
      target.setPointerCapture(event.pointerId);
    });
    target.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (drag) {
        drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3;
        if (drag.part) {
          this.selected = [drag.x, x];
          this.redraw();
        } else if (drag.moved) {
          const [from, until] = drag.view;
          const shift = ((drag.x - x) / (target.clientWidth - GUTTER)) * (until - from);
          this.show(from + shift, until + shift);
        }
        return hideTip();
      }
      const row = this.rowAt(y);
      if (!row || x < GUTTER) return hideTip();
      showTip(event, this.describe(row, this.timeAt(x)));
    });
    target.addEventListener("pointerup", (event) => {
      const [x, y] = place(event);
      const row = this.rowAt(y);
      if (drag?.part && this.selected) {
        const [a, b] = this.selected.map((side) => this.timeAt(Math.max(GUTTER, side)));
        this.selected = null;
        if (Math.abs(b - a) > 0) this.show(Math.min(a, b), Math.max(a, b));
      } else if (drag && !drag.moved && row && !row.slot) {
        row.sm.open = !row.sm.open;
        this.layOut();
      } else if (drag && !drag.moved && x >= GUTTER) {
        target.focus();
      }
      drag = null;
    });
    target.addEventListener("pointerleave", hideTip);
    target.addEventListener("dblclick", (event) => this.zoom(0.4, this.timeAt(place(event)[0])));
    target.addEventListener("keydown", (event) => {
      const keys = { w: () => this.zoom(0.6), s: () => this.zoom(1 / 0.6), a: () => this.move(-0.2) };
      Object.assign(keys, { d: () => this.move(0.2), 0: () => this.show(this.from, this.until) });
      const action = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key.toLowerCase()];
      if (!action) return;
      event.preventDefault();
      action();
    });
  }

  // Moves by a part of the view.
  move(part) {
    const [from, until] = this.view;
    this.show(from + part * (until - from), until + part * (until - from));
  }
}
