// The chart of energy and momentum: its curves are drawn once for a size, then shown up to the time.

const FLOOR = -17;
let ROOF = 0;
const measureDrift = () => { ROOF = Math.ceil(Math.max(FLOOR + 2, ...runs.flatMap((run) => (run.free ? [run.energy, run.spatial] : [run.energy]).map((all) =>
  all.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.log10(x)) : most), FLOOR))))); };
const chartSheet = element("chart"), curves = document.createElement("canvas");
let stale = true; // the curves are those of other runs
const LEFT = 52, TOP = 8, BELOW = 20;

const across = (t, width) => LEFT + (width - 10 - LEFT) * (END > START ? (t - START) / (END - START) : 0);
const upwards = (value, height) => height - BELOW - (height - BELOW - TOP) * (Math.log10(Math.max(value, 1e-17)) - FLOOR) / (ROOF - FLOOR);

function drawCurves(width, height, ratio) {
  stale = false;
  for (const sheet of [chartSheet, curves]) Object.assign(sheet, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const pen = curves.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.lineWidth = 1.5;
  for (const panel of panels) {
    for (const [values, dash] of [[panel.run.energy, []], ...(panel.run.free ? [[panel.run.spatial, [4, 3]]] : [])]) {
      pen.strokeStyle = panel.colour;
      pen.setLineDash(dash);
      pen.beginPath();
      const every = Math.max(1, Math.floor(values.length / (4 * width)));
      for (let i = 0; i < values.length; i += every) if (Number.isFinite(values[i])) pen.lineTo(across(panel.run.t[i], width), upwards(values[i], height));
      pen.stroke();
    }
  }
}

function chart(time) {
  const ratio = Math.min(2, window.devicePixelRatio), width = chartSheet.clientWidth, height = chartSheet.clientHeight;
  if (stale || curves.width !== Math.round(width * ratio) || curves.height !== Math.round(height * ratio)) drawCurves(width, height, ratio);
  const pen = chartSheet.getContext("2d"), ink = getComputedStyle(document.body).color, here = across(time, width);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = pen.strokeStyle = ink;
  for (let e = ROOF; e >= FLOOR; e -= Math.max(1, Math.ceil((ROOF - FLOOR) / 5))) {
    const y = upwards(10 ** e, height);
    pen.globalAlpha = 0.15;
    pen.fillRect(LEFT, y, width - 10 - LEFT, 1);
    pen.globalAlpha = 1;
    pen.fillText(`1e${e}`, 8, y + 4);
  }
  pen.fillText(`t = ${Number(START.toPrecision(6))}`, LEFT, height - 5);
  pen.textAlign = "right";
  pen.fillText(`t = ${Number(END.toPrecision(6))}`, width - 10, height - 5);
  pen.textAlign = "left";
  if (!curves.width || !curves.height) return;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.globalAlpha = 0.25;
  pen.drawImage(curves, 0, 0);
  pen.globalAlpha = 1;
  const done = Math.max(1, Math.round(here * ratio));
  pen.drawImage(curves, 0, 0, done, curves.height, 0, 0, done, curves.height);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.globalAlpha = 0.7;
  pen.fillRect(here - 0.5, TOP, 1, height - BELOW - TOP);
  pen.globalAlpha = 1;
}
