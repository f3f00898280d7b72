// The chart of a top: tilt, precession and spin over time, one row each.

const ROWS = [["tilt", "tilt, degrees"], ["precession", "precession, turns"], ["spin", "spin ω·c"]];
const anglesSheet = element("angles");
let heavy = [], ranges = {};

/** The panels with angles, and the ranges of these. */
function measureAngles() {
  heavy = panels.filter((panel) => panel.pull);
  element("angles-figure").hidden = !heavy.length;
  ranges = Object.fromEntries(ROWS.map(([name]) => [name, rangeOf(name)]));
}

function rangeOf(name) {
  let low = Infinity, high = -Infinity;
  for (const { pull } of heavy) for (const x of pull.angles[name]) [low, high] = [Math.min(low, x), Math.max(high, x)];
  const least = 1e-5 * Math.max(Math.abs(low), Math.abs(high), 1e-9); // a constant is a line, not the error of the interpolation
  return high - low > least ? [low, high] : [low - Math.max(1, Math.abs(low)) / 2, high + Math.max(1, Math.abs(high)) / 2];
}

function drawAngles(time) {
  if (!heavy.length) return;
  const ratio = Math.min(2, window.devicePixelRatio), width = anglesSheet.clientWidth, height = anglesSheet.clientHeight;
  Object.assign(anglesSheet, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const pen = anglesSheet.getContext("2d"), row = (height - BELOW) / ROWS.length;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = "11px system-ui, sans-serif";
  const ink = getComputedStyle(document.body).color;
  ROWS.forEach(([name, label], k) => {
    const [low, high] = ranges[name], top = k * row + 16, bottom = (k + 1) * row - 4;
    const y = (x) => bottom - (bottom - top) * (x - low) / (high - low);
    pen.fillStyle = ink;
    pen.fillText(label, LEFT, k * row + 11);
    for (const [x, at] of [[high, top + 4], [low, bottom + 2]]) pen.fillText(Number((Math.abs(x) < 1e-3 * (high - low) ? 0 : x).toPrecision(3)), 6, at);
    pen.globalAlpha = 0.15;
    pen.fillRect(LEFT, top, width - 10 - LEFT, 1);
    pen.fillRect(LEFT, bottom, width - 10 - LEFT, 1);
    for (const { pull: { angles }, colour } of heavy) {
      const t = angles.times, here = frame(t, time)[0], every = Math.max(1, Math.floor(t.length / (4 * width)));
      for (const [end, alpha] of [[t.length - 1, 0.3], [here, 1]]) {
        pen.globalAlpha = alpha;
        pen.strokeStyle = colour;
        pen.lineWidth = 1.5;
        pen.beginPath();
        for (let i = 0; i <= end; i += every) pen.lineTo(across(t[i], width), y(angles[name][i]));
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
  });
  pen.fillStyle = ink;
  pen.globalAlpha = 0.7;
  pen.fillRect(across(time, width) - 0.5, 4, 1, height - BELOW - 4);
  pen.globalAlpha = 1;
  pen.fillText(`t = ${Number(START.toPrecision(6))}`, LEFT, height - 5);
  pen.textAlign = "right";
  pen.fillText(`t = ${Number(END.toPrecision(6))}`, width - 10, height - 5);
  pen.textAlign = "left";
}
