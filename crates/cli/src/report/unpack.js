// Reads what pack.rs wrote.

async function unpacked(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      if (byte < 128) return value + byte * scale;
      value += (byte - 128) * scale;
    }
  }
}

// The intervals of every SM, as one array each: interval by interval, category by category.
function readOverTime(bytes, meta) {
  const reader = new Reader(bytes);
  const width = meta.categories.length;
  return Array.from({ length: reader.number() }, () => {
    const intervals = new Float64Array(reader.number() * width);
    for (let at = 0; at < intervals.length; at++) intervals[at] = reader.number();
    return intervals;
  });
}

function readSpans(reader, start, more) {
  const length = reader.number();
  const spans = { length, from: new Float64Array(length), until: new Float64Array(length) };
  for (const [name, Type] of more) spans[name] = new Type(length);
  let from = start;
  const columns = more.map(([name]) => spans[name]);
  for (let at = 0; at < length; at++) {
    from += reader.number();
    spans.from[at] = from;
    spans.until[at] = from + reader.number();
    for (let column = 0; column < columns.length; column++) columns[column][at] = reader.number();
  }
  return spans;
}

const WARP = ["warp", "x", "y", "z"].map((name) => [name, Uint32Array]);
const STATE = [["state", Uint8Array], ["pc", Uint32Array]];
const WORD = [["word", Uint32Array], ["lane", Uint8Array]];

function readTimeline(bytes, meta) {
  const reader = new Reader(bytes);
  const sms = Array.from({ length: reader.number() }, () => {
    const sm = { sm: reader.number() };
    sm.slots = Array.from({ length: reader.number() }, () => ({
      warps: readSpans(reader, meta.from, WARP),
      states: readSpans(reader, meta.from, STATE),
      spins: readSpans(reader, meta.from, WORD),
      holds: readSpans(reader, meta.from, WORD),
    }));
    return sm;
  });
  const handOffs = [];
  let taken = meta.from;
  for (let left = reader.number(); left > 0; left--) {
    taken += reader.number();
    const released = taken - reader.number();
    const word = reader.number();
    const [fromSm, fromSlot, toSm, toSlot] = [0, 0, 0, 0].map(() => reader.number());
    handOffs.push({ released, taken, word, fromSm, fromSlot, toSm, toSlot });
  }
  return { sms, handOffs };
}

// The number of spans that begin at or before a time; spans are sorted by their begin.
function countUntil(spans, time) {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.from[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The span that contains a time, or -1, of spans that do not overlap.
function spanAt(spans, time) {
  const at = countUntil(spans, time) - 1;
  return at >= 0 && time < spans.until[at] ? at : -1;
}
