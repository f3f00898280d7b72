// The clock, which drives all panels and the chart, and the controls.

const now = { time: START, playing: false, speed: given.speed, loop: true };
let before = null, afterRefresh = null;

function refresh() {
  for (const panel of panels) panel.show(now.time);
  draw();
  if (!given.many) {
    drawCharts(now.time);
    if (element("numbers").open) element("values").textContent = panels.map((panel) => panel.inNumbers()).join("\n");
  }
  element("clock").textContent = `t = ${now.time.toFixed(END - START < 10 ? 3 : 2)}`;
  const share = END > START ? (now.time - START) / (END - START) : 0;
  element("scrub").value = Math.round(10000 * share);
  element("scrub").setAttribute("aria-valuetext", element("clock").textContent);
  if (afterRefresh) afterRefresh();
}

function seek(time) {
  now.time = Math.min(END, Math.max(START, time));
  refresh();
}

function play(on) {
  now.playing = on && END > START;
  before = null;
  element("play").textContent = now.playing ? "Pause" : "Play";
  if (now.playing && now.time >= END) now.time = START;
  if (now.playing) requestAnimationFrame(tick);
}

function tick(stamp) {
  if (!now.playing) return;
  if (before !== null) {
    let time = now.time + now.speed * Math.min(0.25, (stamp - before) / 1000);
    if (time >= END) {
      time = now.loop ? START + (time - END) % (END - START) : END;
      if (!now.loop) play(false);
    }
    now.time = time;
    refresh();
  }
  before = stamp;
  if (now.playing) requestAnimationFrame(tick);
}

/** The next speed of the list, faster or slower. */
function faster(step) {
  const at = given.speeds.indexOf(now.speed) + step;
  pace(given.speeds[Math.min(given.speeds.length - 1, Math.max(0, at))]);
}

function pace(speed) {
  now.speed = speed;
  element("speed").value = String(speed);
}

// --- controls ----------------------------------------------------------------------------------------------

for (const speed of given.speeds) element("speed").add(new Option(`${speed} ×`, String(speed)));
KINDS.forEach(([kind, label], i) => {
  const box = document.createElement("label");
  const tick = Object.assign(document.createElement("input"), { type: "checkbox", checked: shown[kind], id: `show-${kind}` });
  box.append(tick, label);
  box.title = `key ${i + 1}`;
  tick.addEventListener("change", () => toggle(kind, tick.checked));
  element("toggles").append(box);
});

function toggle(kind, on) {
  shown[kind] = on;
  element(`show-${kind}`).checked = on;
  for (const panel of panels) for (const part of panel.parts[kind]) part.visible = on;
  refresh();
}

const ROUND = 0.1; // radians a key press
const KEYS = {
  " ": () => play(!now.playing), home: () => seek(START), end: () => seek(END), l: () => element("loop").click(), c: nextChart, r: () => { firstView(); draw(); },
  "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1),
  arrowright: (far) => step(1, far), arrowleft: (far) => step(-1, far),
  a: () => lookFrom(-ROUND, 0, 1), d: () => lookFrom(ROUND, 0, 1), w: () => lookFrom(0, ROUND, 1), s: () => lookFrom(0, -ROUND, 1),
  e: () => lookFrom(0, 0, 1 / 1.1), q: () => lookFrom(0, 0, 1.1),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.tagName, own = field === "BUTTON" || field === "SUMMARY" || (field === "INPUT" && event.target.type === "checkbox");
  if (field === "SELECT" || (own && event.key === " ")) return;
  const kind = KINDS[Number(event.key) - 1], action = KEYS[event.key.toLowerCase()];
  if (kind) toggle(kind[0], !shown[kind[0]]);
  else if (action) action(event.shiftKey);
  else return;
  event.preventDefault();
});

function nextChart() {
  if (given.many) return;
  choose(choices[(choices.findIndex(({ name }) => name === choice) + 1) % choices.length].name);
  refresh();
}

/** One frame of the first trajectory, or a fiftieth of the run. */
function step(direction, far) {
  play(false);
  if (far) return seek(now.time + direction * (END - START) / 50);
  const t = panels[0].t, [i, part] = frame(t, now.time);
  const target = direction > 0 ? i + 1 : part > 0 ? i : i - 1;
  return seek(t[Math.min(t.length - 1, Math.max(0, target))]);
}

element("play").addEventListener("click", () => play(!now.playing));
element("scrub").addEventListener("input", () => { play(false); seek(START + (END - START) * element("scrub").value / 10000); });
element("speed").addEventListener("change", () => pace(Number(element("speed").value)));
element("loop").addEventListener("change", () => { now.loop = element("loop").checked; });
controls.addEventListener("change", draw);
window.addEventListener("resize", () => { arrange(); refresh(); });
themes.addEventListener("change", () => { for (const panel of panels) panel.paint(); refresh(); });
for (const id of ["play", "scrub", "speed", "loop"]) element(id).disabled = !(END > START);
element("note").textContent = [given.note, renderer ? "" : "This browser draws nothing in three dimensions (WebGL is off); chart and numbers are shown"].filter(Boolean).join(". ");

window.polhode = {
  seek, play: () => play(true), pause: () => play(false),
  state: () => ({ ...now, attitudes: panels.flatMap((panel) => panel.attitudes()) }),
  run: (i) => ({ t: [...runs[i].t], quaternion: [...runs[i].quaternion], momentum: [...runs[i].momentum] }),
  places: (i) => panels[i].places(),
  drawn: (i) => {
    const { scale, spin, plane, polhode, herpolhode, pull } = panels[i];
    return { scale, tip: spin.end.toArray(), plane: plane && plane.position.toArray(), polhode, herpolhode, trace: pull && pull.points, angles: pull && pull.angles };
  },
};
measure();
element("drift").hidden = element("numbers").hidden = Boolean(given.many);
element("numbers").addEventListener("toggle", refresh);
if (given.live) liveControls();
pace(given.speed);
arrange();
firstView();
refresh();
if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
