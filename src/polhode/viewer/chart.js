// Charts over time: rows of curves, which are drawn once for a size, then shown up to the time.

const LEFT = 52, TOP = 8, BELOW = 20;
const FLOOR = -17; // the exponent below which an error is not told from zero

const across = (t, width) => LEFT + (width - 10 - LEFT) * (END > START ? (t - START) / (END - START) : 0);

/** The range of curves; a constant is a line, not the error of the interpolation. */
function rangeOf(curves) {
  let low = Infinity, high = -Infinity;
  for (const { values } of curves) for (const x of values) if (Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
  if (low > high) return [-1, 1];
  const least = 1e-5 * Math.max(Math.abs(low), Math.abs(high), 1e-9);
  return high - low > least ? [low, high] : [low - Math.max(1, Math.abs(low)) / 2, high + Math.max(1, Math.abs(high)) / 2];
}

/** A row of curves { t, values, colour, dash } on a linear axis; in front of its label may stand the names of the curves. */
const linearRow = (label, curves, keys = []) => ({ label, curves, keys, range: rangeOf(curves), of: (x) => x });

/** A row on a logarithmic axis of powers of ten. */
function powersRow(curves) {
  const most = curves.map(({ values }) => values.reduce((high, x) => (Number.isFinite(x) ? Math.max(high, Math.log10(x)) : high), FLOOR));
  const roof = Math.ceil(Math.max(FLOOR + 2, ...most));
  return { label: "", keys: [], curves, range: [FLOOR, roof], of: (x) => Math.log10(Math.max(x, 10 ** FLOOR)), powers: true };
}

/** Round numbers within a range; its ends if there is no room for more. */
function ticksOf({ range: [low, high], powers }, room) {
  const number = Math.floor(room / 26);
  if (powers) {
    const step = Math.max(1, Math.ceil((high - low) / 5)), found = [];
    for (let e = high; e >= low; e -= step) found.push([e, `1e${e}`]);
    return found;
  }
  const short = (x) => String(Number((Math.abs(x) < 1e-3 * (high - low) ? 0 : x).toPrecision(3)));
  if (number < 3) return [[high, short(high)], [low, short(low)]];
  const least = (high - low) / number, power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= least), found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push([k * step, short(k * step)]);
  return found;
}

class Chart {
  constructor(id) {
    this.sheet = element(id);
    this.curves = document.createElement("canvas");
    this.show([]);
  }

  show(rows) {
    this.rows = rows;
    this.stale = true; // the curves are those of other rows
  }

  /** The top and the bottom of a row, below its label. */
  ends(k, height) {
    const room = (height - BELOW - TOP) / this.rows.length, { label, keys } = this.rows[k];
    return [TOP + k * room + (label || keys.length ? 14 : 0), TOP + (k + 1) * room - (this.rows.length > 1 ? 4 : 0)];
  }

  height(k, x, height) {
    const { of, range: [low, high] } = this.rows[k], [top, bottom] = this.ends(k, height);
    return bottom - (bottom - top) * (of(x) - low) / (high - low);
  }

  drawCurves(width, height, ratio) {
    this.stale = false;
    for (const sheet of [this.sheet, this.curves]) Object.assign(sheet, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const pen = this.curves.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.lineWidth = 1.5;
    this.rows.forEach(({ curves }, k) => {
      for (const { t, values, colour, dash } of curves) {
        pen.strokeStyle = colour;
        pen.setLineDash(dash || []);
        pen.beginPath();
        const every = Math.max(1, Math.floor(values.length / (4 * width)));
        for (let i = 0; i < values.length; i += every) if (Number.isFinite(values[i])) pen.lineTo(across(t[i], width), this.height(k, values[i], height));
        pen.stroke();
      }
    });
  }

  draw(time) {
    const ratio = Math.min(2, window.devicePixelRatio), width = this.sheet.clientWidth, height = this.sheet.clientHeight;
    if (this.stale || this.curves.width !== Math.round(width * ratio) || this.curves.height !== Math.round(height * ratio)) this.drawCurves(width, height, ratio);
    const pen = this.sheet.getContext("2d"), here = across(time, width);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    this.drawFrame(pen, width, height);
    if (!this.curves.width || !this.curves.height) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.globalAlpha = 0.25;
    pen.drawImage(this.curves, 0, 0);
    pen.globalAlpha = 1;
    const done = Math.max(1, Math.round(here * ratio));
    pen.drawImage(this.curves, 0, 0, done, this.curves.height, 0, 0, done, this.curves.height);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.globalAlpha = 0.7;
    pen.fillRect(here - 0.5, TOP, 1, height - BELOW - TOP);
    pen.globalAlpha = 1;
  }

  /** Lines of numbers, labels and names, and the ends of the time. */
  drawFrame(pen, width, height) {
    const ink = getComputedStyle(document.body).color;
    pen.font = "11px system-ui, sans-serif";
    this.rows.forEach((row, k) => {
      const [top, bottom] = this.ends(k, height);
      pen.fillStyle = ink;
      for (const [x, text] of ticksOf(row, bottom - top)) {
        const y = bottom - (bottom - top) * (x - row.range[0]) / (row.range[1] - row.range[0]);
        pen.globalAlpha = 0.15;
        pen.fillRect(LEFT, y, width - 10 - LEFT, 1);
        pen.globalAlpha = 1;
        pen.fillText(text, 6, y + 4);
      }
      let x = LEFT;
      for (const [text, colour] of [...row.keys, [row.label, ink]]) {
        pen.fillStyle = colour;
        pen.fillText(text, x, top - 4);
        x += pen.measureText(text).width + 12;
      }
    });
    pen.fillStyle = ink;
    pen.fillText(`t = ${Number(START.toPrecision(6))}`, LEFT, height - 5);
    pen.textAlign = "right";
    pen.fillText(`t = ${Number(END.toPrecision(6))}`, width - 10, height - 5);
    pen.textAlign = "left";
  }
}
