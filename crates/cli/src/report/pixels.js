// Rows of the timeline as pixels. A frame is one image: every row in view is written into it, and it is drawn once.
//
// A pixel shows the mean of what happens in it. Far away that comes from sums that were made once, at several
// resolutions; near by, from the spans in view. So a frame costs about the same however many spans there are.

// Bins of the whole time at each resolution. Of large chips not the finest, which would take too much memory.
const LEVELS = [2048, 8192, 32768];
const MOST_AT_FINEST = 24;

const pack = ([r, g, b], alpha = 255) => (alpha << 24) | (b << 16) | (g << 8) | r;

class Pixels {
  constructor(from, until, states, sms) {
    this.from = from;
    this.until = until;
    this.resolutions = sms > MOST_AT_FINEST ? LEVELS.slice(0, -1) : LEVELS;
    const colours = states.map((name) => rgb(colourOf(name)));
    this.parts = Float32Array.from(colours.flat());
    this.states = Int32Array.from(colours.map((colour) => pack(colour)));
    this.spinning = pack(rgb(colourOf("spinning")));
    this.words = Int32Array.from(WORD_COLOURS.map((colour) => pack(rgb(colour))));
    this.canvas = document.createElement("canvas");
    this.sums = new Float32Array(0);
  }

  // Begins an image of a part of the time, with nothing in it.
  begin(view, width, height) {
    if (this.width !== width || this.height !== height) {
      [this.width, this.height] = [this.canvas.width, this.canvas.height] = [width, height];
      this.context = this.canvas.getContext("2d");
      this.image = this.context.createImageData(width, height);
      this.dots = new Int32Array(this.image.data.buffer);
      this.line = new Int32Array(width);
    }
    this.view = view;
    this.perPixel = (view[1] - view[0]) / width;
    this.dots.fill(0);
  }

  show(context, x, y) {
    this.context.putImageData(this.image, 0, 0);
    context.drawImage(this.canvas, x, y);
  }

  // The coarsest resolution that is finer than pixels, if one is.
  level(resolutions) {
    const whole = this.until - this.from;
    return resolutions.find((count) => whole / count <= this.perPixel);
  }

  // The bins of a resolution under each pixel: those of pixel x are from `at(x)` up to `at(x + 1)`, and one at least.
  bins(level) {
    const scale = level / (this.until - this.from);
    const first = (this.view[0] - this.from) * scale;
    return (x) => Math.floor(first + x * this.perPixel * scale);
  }

  zeroed(length) {
    if (this.sums.length < length) this.sums = new Float32Array(length);
    return this.sums.fill(0, 0, length);
  }

  // Warps of an SM by bin and column, at a resolution. A column is a state that occurs, and the last one spinning.
  smLevel(sm, level) {
    sm.levels ??= new Map();
    if (!sm.levels.has(level)) {
      const columns = sm.used.length + 1;
      const sums = new Float32Array(level * columns);
      addSlots(sums, columns, level, sm, this.from, level / (this.until - this.from));
      sm.levels.set(level, sums);
    }
    return sm.levels.get(level);
  }

  // The same by pixel.
  smPixels(sm) {
    const columns = sm.used.length + 1;
    const pixels = this.zeroed(this.width * columns);
    const level = this.level(this.resolutions);
    if (!level) {
      addSlots(pixels, columns, this.width, sm, this.view[0], 1 / this.perPixel);
      return pixels;
    }
    const sums = this.smLevel(sm, level);
    const binAt = this.bins(level);
    for (let x = 0; x < this.width; x++) {
      const first = binAt(x);
      const last = Math.min(level, Math.max(first + 1, binAt(x + 1)));
      const place = x * columns;
      for (let bin = first * columns; bin < last * columns; bin += columns) {
        for (let at = 0; at < columns; at++) pixels[place + at] += sums[bin + at];
      }
      for (let at = 0; at < columns; at++) pixels[place + at] /= last - first;
    }
    return pixels;
  }

  // The warps of an SM, stacked by state from the bottom; over them, how many spin.
  drawSm(sm, top, tall) {
    const { width, height, dots } = this;
    const columns = sm.used.length + 1;
    const pixels = this.smPixels(sm);
    const scale = tall / Math.max(sm.slots.length, 1);
    const colours = Int32Array.from(sm.used, (state) => this.states[state]);
    const highest = Math.max(0, -top);
    const lowest = Math.min(tall, height - top) - 1;
    for (let x = 0; x < width; x++) {
      let sum = 0;
      let y = tall - 1;
      for (let at = 0; at < columns - 1; at++) {
        sum += pixels[x * columns + at];
        const end = Math.max(highest, Math.ceil(tall - 0.5 - scale * sum));
        const colour = colours[at];
        for (; y >= end; y--) if (y <= lowest) dots[(top + y) * width + x] = colour;
      }
      const spinning = pixels[x * columns + columns - 1];
      if (spinning <= 0) continue;
      const line = Math.max(0, Math.min(tall - 2, Math.round(tall - 1 - scale * spinning)));
      for (y = line; y < line + 2; y++) {
        if (y >= highest && y <= lowest) dots[(top + y) * width + x] = this.spinning;
      }
    }
  }

  // Writes the line of pixels into the image, so many times.
  repeatLine(top, tall) {
    const [first, end] = [Math.max(0, top), Math.min(this.height, top + tall)];
    for (let y = first; y < end; y++) this.dots.set(this.line, y * this.width);
  }

  // Colours of a slot's states at a resolution: red, green, blue and how much of the bin there is a warp.
  slotLevel(slot, level) {
    slot.levels ??= new Map();
    if (!slot.levels.has(level)) {
      const sums = this.zeroed(4 * level);
      addColours(sums, level, slot.states, this.parts, this.from, level / (this.until - this.from));
      const bytes = Uint8ClampedArray.from(sums.subarray(0, 4 * level), (sum, at) => sum * (at % 4 === 3 ? 255 : 1));
      slot.levels.set(level, bytes);
    }
    return slot.levels.get(level);
  }

  // The states of a slot's warps.
  drawSlot(slot, top, tall) {
    const { width, line } = this;
    // With few spans nothing is gained.
    const level = this.level(this.resolutions.filter((count) => 2 * count < slot.states.length));
    const bytes = level && this.slotLevel(slot, level);
    const sums = this.zeroed(4 * width);
    if (level) {
      const binAt = this.bins(level);
      for (let x = 0; x < width; x++) {
        const first = binAt(x);
        const last = Math.min(level, Math.max(first + 1, binAt(x + 1)));
        const part = 1 / (last - first);
        for (let at = 4 * first; at < 4 * last; at += 4) {
          sums[4 * x] += bytes[at] * part;
          sums[4 * x + 1] += bytes[at + 1] * part;
          sums[4 * x + 2] += bytes[at + 2] * part;
          sums[4 * x + 3] += (bytes[at + 3] * part) / 255;
        }
      }
    } else {
      addColours(sums, width, slot.states, this.parts, this.view[0], 1 / this.perPixel);
    }
    for (let x = 0, at = 0; x < width; x++, at += 4) {
      const part = sums[at + 3];
      if (part < 0.004) {
        line[x] = 0;
        continue;
      }
      const alpha = part >= 1 ? 255 : 255 * part;
      line[x] = (alpha << 24) | ((sums[at + 2] / part) << 16) | ((sums[at + 1] / part) << 8) | (sums[at] / part);
    }
    this.repeatLine(top, tall);
  }

  // Spans of words as a strip, each at least a pixel wide. Without colours of words, all are spinning.
  drawStrip(spans, first, top, tall, colours) {
    const { width, line, perPixel } = this;
    const [from, until] = this.view;
    const end = countUntil(spans, until);
    let drawn = 0;
    line.fill(0);
    for (let at = first; at < end; at++) {
      const b = Math.min(width, Math.round((spans.until[at] - from) / perPixel));
      const a = Math.max(drawn, Math.floor((spans.from[at] - from) / perPixel));
      if (spans.until[at] < from || a >= width) continue;
      const stop = Math.max(b, Math.floor((spans.from[at] - from) / perPixel) + 1);
      const colour = colours ? colours[spans.word[at] % colours.length] : this.spinning;
      for (let x = a; x < stop; x++) line[x] = colour;
      drawn = Math.max(drawn, stop);
    }
    if (drawn > 0) this.repeatLine(top, tall);
  }
}

// Adds the spans of an SM's slots to the bins that they touch, in proportion: their states, and then the warps that
// spin. Bin 0 begins at `start`; `scale` is bins per cycle.
function addSlots(sums, columns, count, sm, start, scale) {
  const end = start + count / scale;
  const columnOf = new Int32Array(256);
  sm.used.forEach((state, column) => (columnOf[state] = column));
  // Bins that a span covers whole: one more from here on, one less from there on.
  const steps = new Int32Array((count + 1) * columns);
  for (const slot of sm.slots) {
    for (const spans of [slot.states, slot.spins]) {
      const last = countUntil(spans, end);
      const { from, until, state } = spans;
      for (let at = Math.max(0, countUntil(spans, start) - 1); at < last; at++) {
        const a = Math.max(0, (from[at] - start) * scale);
        const b = Math.min(count, (until[at] - start) * scale);
        if (a >= b) continue;
        const column = state ? columnOf[state[at]] : columns - 1;
        const first = Math.floor(a);
        const final = Math.floor(b);
        if (first === final) {
          sums[first * columns + column] += b - a;
          continue;
        }
        sums[first * columns + column] += first + 1 - a;
        steps[(first + 1) * columns + column]++;
        steps[final * columns + column]--;
        if (b > final) sums[final * columns + column] += b - final;
      }
    }
  }
  const covering = new Int32Array(columns);
  for (let bin = 0, at = 0; bin < count; bin++) {
    for (let column = 0; column < columns; column++, at++) {
      covering[column] += steps[at];
      sums[at] += covering[column];
    }
  }
}

// Adds the colours of states to the bins that they touch, in proportion, and how much of each bin they cover.
function addColours(sums, count, spans, parts, start, scale) {
  const last = countUntil(spans, start + count / scale);
  const { from, until, state } = spans;
  for (let at = Math.max(0, countUntil(spans, start) - 1); at < last; at++) {
    const a = Math.max(0, (from[at] - start) * scale);
    const b = Math.min(count, (until[at] - start) * scale);
    const colour = 3 * state[at];
    const red = parts[colour];
    const green = parts[colour + 1];
    const blue = parts[colour + 2];
    for (let x = Math.floor(a); x < b; x++) {
      const part = (b < x + 1 ? b : x + 1) - (a > x ? a : x);
      const place = 4 * x;
      sums[place] += red * part;
      sums[place + 1] += green * part;
      sums[place + 2] += blue * part;
      sums[place + 3] += part;
    }
  }
}
