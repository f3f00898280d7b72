// Animated GIF 89a (https://www.w3.org/Graphics/GIF/spec-gif89a.txt): one table of 255 colours, chosen by median cut, and the places that change.

const CLEAR_INDEX = 255; // shows what the picture before has
const MOST_CODES = 4096;

const shortened = (r, g, b) => (r >> 3) << 10 | (g >> 3) << 5 | b >> 3; // five bits of each colour

/** The table of colours: 255 boxes of colours that occur, each halved at its median (P. Heckbert, SIGGRAPH 1982). */
class Palette {
  constructor() {
    this.counts = new Float64Array(32768);
    this.sums = [0, 1, 2].map(() => new Float64Array(32768));
  }

  /** Count the colours of a picture, RGBA. */
  count(pixels) {
    for (let i = 0; i < pixels.length; i += 4) {
      const short = shortened(pixels[i], pixels[i + 1], pixels[i + 2]);
      this.counts[short]++;
      for (let c = 0; c < 3; c++) this.sums[c][short] += pixels[i + c];
    }
  }

  /** Choose the colours; of those that did not occur, the nearest is found when one is asked for. */
  finish() {
    const all = [...this.counts.keys()].filter((short) => this.counts[short]);
    const boxes = [this.box(all)];
    while (boxes.length < CLEAR_INDEX) {
      const worth = boxes.map((box) => (box.colours.length > 1 ? box.length * Math.sqrt(box.weight) : 0));
      const at = worth.indexOf(Math.max(...worth));
      if (!worth[at]) break;
      boxes.splice(at, 1, ...this.halved(boxes[at]));
    }
    this.colours = boxes.map((box) => [0, 1, 2].map((c) => Math.round(box.colours.reduce((sum, short) => sum + this.sums[c][short], 0) / box.weight)));
    this.index = new Int16Array(32768).fill(-1);
    boxes.forEach((box, i) => { for (const short of box.colours) this.index[short] = i; });
    return this;
  }

  box(colours) {
    const lengths = [10, 5, 0].map((shift) => {
      const parts = colours.map((short) => short >> shift & 31);
      return parts.reduce((a, b) => Math.max(a, b)) - parts.reduce((a, b) => Math.min(a, b));
    });
    const length = Math.max(...lengths), weight = colours.reduce((sum, short) => sum + this.counts[short], 0);
    return { colours, length, weight, shift: [10, 5, 0][lengths.indexOf(length)] };
  }

  halved({ colours, weight, shift }) {
    const sorted = [...colours].sort((a, b) => (a >> shift & 31) - (b >> shift & 31));
    let at = 0, sum = 0;
    while (at < sorted.length - 1 && (at === 0 || sum + this.counts[sorted[at]] <= weight / 2)) sum += this.counts[sorted[at++]];
    return [this.box(sorted.slice(0, at)), this.box(sorted.slice(at))];
  }

  nearest(short) {
    const colour = [10, 5, 0].map((shift) => ((short >> shift & 31) << 3) + 4);
    let best = 0, least = Infinity;
    this.colours.forEach((one, i) => {
      const apart = one.reduce((sum, x, c) => sum + (x - colour[c]) ** 2, 0);
      if (apart < least) [best, least] = [i, apart];
    });
    return best;
  }

  /** The indices of the colours of a picture. */
  indices(pixels) {
    const found = new Uint8Array(pixels.length / 4);
    for (let i = 0; i < found.length; i++) {
      const short = shortened(pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2]);
      if (this.index[short] < 0) this.index[short] = this.nearest(short);
      found[i] = this.index[short];
    }
    return found;
  }
}

/** The compression of GIF (appendix F): words of indices get codes of 9 to 12 bits, until the table is full. */
function lzw(indices) {
  const clear = 256, end = 257, known = new Uint16Array(MOST_CODES << 8), bytes = [];
  let next = end + 1, width = 9, held = 0, bits = 0, word = indices[0];
  const put = (code) => {
    held |= code << bits;
    for (bits += width; bits >= 8; bits -= 8) {
      bytes.push(held & 255);
      held >>>= 8;
    }
  };
  put(clear);
  for (let i = 1; i < indices.length; i++) {
    const place = word << 8 | indices[i];
    if (known[place]) {
      word = known[place];
      continue;
    }
    put(word);
    if (next < MOST_CODES) {
      if (next === 1 << width) width++; // the reader knows this code one step later
      known[place] = next++;
    } else {
      put(clear);
      known.fill(0);
      [next, width] = [end + 1, 9];
    }
    word = indices[i];
  }
  put(word);
  if (next === 1 << width && width < 12) width++;
  put(end);
  if (bits) bytes.push(held & 255);
  return bytes;
}

const low = (number) => [number & 255, number >> 8];
const ascii = (text) => [...text].map((letter) => letter.charCodeAt(0));

/** A file that grows by pictures of one size; `delay` is in hundredths of a second. */
class Gif {
  constructor(width, height, delay, palette) {
    Object.assign(this, { width, height, delay, palette, before: null });
    const table = new Uint8Array(768);
    palette.colours.forEach((colour, i) => table.set(colour, 3 * i));
    const forEver = [0x21, 0xff, 11, ...ascii("NETSCAPE2.0"), 3, 1, 0, 0, 0];
    this.parts = [new Uint8Array([...ascii("GIF89a"), ...low(width), ...low(height), 0xf7, 0, 0, ...table, ...forEver])];
  }

  /** Append a picture, RGBA; only the rectangle that changed is written. */
  add(pixels, delay = this.delay) {
    const indices = this.palette.indices(pixels), [x, y, width, height] = this.changed(indices);
    const part = new Uint8Array(width * height);
    for (let j = 0; j < height; j++) {
      for (let i = 0; i < width; i++) {
        const at = (y + j) * this.width + x + i;
        part[j * width + i] = this.before && this.before[at] === indices[at] ? CLEAR_INDEX : indices[at];
      }
    }
    const bytes = lzw(part), blocks = [];
    for (let i = 0; i < bytes.length; i += 255) blocks.push(Math.min(255, bytes.length - i), ...bytes.slice(i, i + 255));
    const kept = 1 << 2, clear = 1; // the picture stays below the next; one index is clear
    this.parts.push(new Uint8Array([
      0x21, 0xf9, 4, kept | clear, ...low(delay), CLEAR_INDEX, 0, 0x2c, ...low(x), ...low(y), ...low(width), ...low(height), 0, 8,
    ]), new Uint8Array(blocks), new Uint8Array(1));
    this.before = indices;
  }

  /** The rectangle x, y, width, height in which indices differ from those before. */
  changed(indices) {
    if (!this.before) return [0, 0, this.width, this.height];
    let [left, top, right, bottom] = [this.width, this.height, -1, -1];
    for (let at = 0; at < indices.length; at++) {
      if (indices[at] === this.before[at]) continue;
      const x = at % this.width, y = (at - x) / this.width;
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
    }
    return right < 0 ? [0, 0, 1, 1] : [left, top, right - left + 1, bottom - top + 1];
  }

  file() {
    return new Blob([...this.parts, new Uint8Array([0x3b])], { type: "image/gif" });
  }
}
