// The charts below the picture: the angles of a top, and by choice the angular velocity or the error of the energy.

const ROUND_OFF = 1e-11; // errors below are round-off, which says nothing about the motion
const anglesChart = new Chart("angles"), chart = new Chart("chart");
let choices = [], choice = "";

/** Tilt, precession and spin of tops, one row each. */
function angleRows(heavy) {
  const curves = (name) => heavy.map(({ pull: { angles }, colour }) => ({ t: angles.times, values: angles[name], colour }));
  return [["tilt", "tilt, degrees"], ["precession", "precession, turns"], ["spin", "spin ω·c"]].map(([name, label]) => linearRow(label, curves(name)));
}

/** The components of ω in the body: of one run in the colours of the axes, of several one row for each axis. */
function omegaRows() {
  const curve = (panel, i, colour) => ({ t: panel.times, values: panel.omega.map((w) => w[i]), colour });
  const names = ["ω₁", "ω₂", "ω₃"];
  if (panels.length > 1) return names.map((name, i) => linearRow(name, panels.map((panel) => curve(panel, i, panel.colour))));
  return [linearRow("about the axes 1, 2, 3 of the body", AXES.map((colour, i) => curve(panels[0], i, colour)), names.map((name, i) => [name, AXES[i]]))];
}

/** Relative changes since the start, full lines for the energy and dashed ones for the momentum of free bodies. */
const errorRows = () => [powersRow(panels.flatMap(({ run, colour }) =>
  [{ t: run.t, values: run.energy, colour }, ...(run.free ? [{ t: run.t, values: run.spatial, colour, dash: [4, 3] }] : [])]))];

const mostError = () => Math.max(...runs.map((run) => run.energy.reduce((most, x) => (Number.isFinite(x) ? Math.max(most, x) : most), 0)));

/** What can be shown; errors come first where several runs of one conserved energy differ by more than round-off. */
function chartChoices() {
  const kept = runs.every((run) => run.conserves), what = kept ? "Error of energy" : "Change of energy", most = mostError();
  const momentum = runs.some((run) => run.free) ? " (solid) and momentum (dashed)" : "";
  const note = kept && most < ROUND_OFF ? "; this is round-off" : "";
  const found = [
    { name: "omega", label: "Angular velocity", caption: "Components of the angular velocity ω in the body", rows: omegaRows },
    { name: "error", label: what, caption: `${what}${momentum}, relative, since the start${note}`, rows: errorRows },
  ];
  return runs.length > 1 && kept && most >= ROUND_OFF ? found.reverse() : found;
}

/** Curves of other runs. */
function measureCharts() {
  const heavy = panels.filter((panel) => panel.pull);
  element("angles-figure").hidden = !heavy.length;
  if (heavy.length) anglesChart.show(angleRows(heavy));
  choices = chartChoices();
  element("tabs").replaceChildren(...choices.map(({ name, label }) => {
    const tab = Object.assign(document.createElement("button"), { type: "button", textContent: label, id: `tab-${name}` });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", "chart");
    tab.addEventListener("click", () => { choose(name); chart.draw(now.time); });
    return tab;
  }));
  choose(choices.some(({ name }) => name === choice) ? choice : choices[0].name);
}

function choose(name) {
  choice = name;
  for (const one of choices) element(`tab-${one.name}`).setAttribute("aria-selected", String(one.name === name));
  const { rows, caption } = choices.find((one) => one.name === name);
  element("caption").textContent = caption;
  element("chart").setAttribute("aria-label", `${caption}, over time`);
  chart.show(rows());
}

function drawCharts(time) {
  if (!element("angles-figure").hidden) anglesChart.draw(time);
  chart.draw(time);
}
