// A page whose motion is computed in it: the kernel `polhodeStep` is the Python kernel of the method, written as JavaScript.

const chosen = Object.fromEntries((given.live ? given.live.sliders : []).map(({ name, value }) => [name, value]));

/** The start: a top is tilted about x and spins about its axis; a free body turns about an axis between its axes 2 and 1. */
function liveStart({ tilt, spin, precession }) {
  const angle = tilt * Math.PI / 180;
  if (given.live.kind === "free") return { q: [1, 0, 0, 0], omega: [spin * Math.sin(angle), spin * Math.cos(angle), 0] };
  return { q: [Math.cos(angle / 2), Math.sin(angle / 2), 0, 0], omega: [0, precession * Math.sin(angle), spin] };
}

/** The edges of the uniform box of mass 1 with given moments, a² = 6 (I2 + I3 - I1); null if there is none. */
function boxEdges([a, b, c]) {
  const squares = [b + c - a, c + a - b, a + b - c].map((x) => 6 * x), most = Math.max(...squares);
  return squares.every((x) => x >= 0) ? squares.map((x) => Math.sqrt(Math.max(x, given.live.thin ** 2 * most))) : null;
}

/** Radius and distance of the disc of mass 1 on an axle with given moments: l² = I1 - I3/2, r² = 2 I3; null if there is none. */
function discSizes([across, , along]) {
  const square = across - along / 2;
  return square >= 0 ? { radius: Math.sqrt(2 * along), far: Math.sqrt(square) } : null;
}

/** What is drawn of a body with given moments: `parts` are a box and a cylinder of unit size. */
function liveShape(moments) {
  const [box, cylinder] = given.live.parts;
  if (given.live.kind === "free") {
    const edges = boxEdges(moments);
    return edges && { shape: [{ ...box, stretch: edges }], reach: Math.hypot(...edges) / 2 };
  }
  const sizes = discSizes(moments);
  if (!sizes) return null;
  const { radius, far } = sizes, thin = 2 * given.live.thin * Math.max(radius, far);
  const axle = { ...cylinder, stretch: [thin / 2, thin / 2, far], place: [0, 0, far / 2] };
  return { shape: [axle, { ...cylinder, stretch: [radius, radius, thin], place: [0, 0, far] }], reach: Math.hypot(radius, far) };
}

/** The trajectory for the chosen values: every step of the kernel. */
function liveRun() {
  const { kind, steps, end, label } = given.live, top = kind === "top";
  const moments = top ? [chosen.I1, chosen.I1, chosen.I3] : [chosen.I1, chosen.I2, chosen.I3];
  const inverse = moments.map((x) => 1 / x), params = top ? [chosen.mgl] : [];
  const { q, omega } = liveStart(chosen), momentum = omega.map((x, i) => x * moments[i]), dt = end / steps;
  const made = { t: new Float64Array(steps + 1), quaternion: new Float64Array(4 * steps + 4), momentum: new Float64Array(3 * steps + 3) };
  let last = 0;
  for (let n = 0; ; n++) {
    made.t[n] = n * dt;
    made.quaternion.set(q, 4 * n);
    made.momentum.set(momentum, 3 * n);
    last = n;
    if (n === steps || polhodeStep(dt, n * dt, moments, inverse, ...(top ? [params] : []), q, momentum) !== 0) break;
  }
  const run = {
    t: made.t.slice(0, last + 1), quaternion: made.quaternion.slice(0, 4 * last + 4), momentum: made.momentum.slice(0, 3 * last + 3),
    label: given.live.name, how: `computed by ${label}`, conserves: true, moments, principal: new THREE.Quaternion(), free: !top, shape: null, reach: 1, ...liveShape(moments),
    pull: top ? { down: [0, 0, -1], arm: [0, 0, 1], name: "g", weight: true } : null,
  };
  return { ...run, ...liveChanges(run, params) };
}

/** Relative changes of the energy T + m g l R33 and of the momentum in space since the start. */
function liveChanges(run, [mgl = 0]) {
  const height = (i) => 1 - 2 * (run.quaternion[4 * i + 1] ** 2 + run.quaternion[4 * i + 2] ** 2);
  const energy = Float64Array.from(run.t, (_, i) => run.moments.reduce((sum, x, k) => sum + run.momentum[3 * i + k] ** 2 / x / 2, mgl * height(i)));
  const first = spaceMomentum(run, 0), size = first.length() || 1, E = Math.abs(energy[0]) || 1;
  return { energy: energy.map((x) => Math.abs(x - energy[0]) / E), spatial: Float64Array.from(run.t, (_, i) => spaceMomentum(run, i).distanceTo(first) / size) };
}

/** Sliders for the body and its start; a new motion at most once for a picture. */
function liveControls() {
  const place = element("live");
  place.hidden = false;
  let waiting = false;
  const renew = () => {
    waiting = false;
    const playing = now.playing;
    play(false);
    replaceRuns([liveRun()]);
    sayWhetherThereIsABody();
    seek(START);
    play(playing);
  };
  for (const { name, label, min, max, step, value, unit } of given.live.sliders) {
    const row = document.createElement("label"), shown = document.createElement("output");
    const slider = Object.assign(document.createElement("input"), { type: "range", id: `live-${name}`, min, max, step });
    slider.value = value;
    const say = () => { shown.textContent = `${Number(chosen[name].toPrecision(4))}${unit}`; };
    slider.addEventListener("input", () => {
      chosen[name] = Number(slider.value);
      say();
      if (!waiting) requestAnimationFrame(renew);
      waiting = true;
    });
    say();
    row.append(Object.assign(document.createElement("span"), { textContent: label }), slider, shown);
    place.append(row);
  }
  sayWhetherThereIsABody();
}

function sayWhetherThereIsABody() {
  const missing = !liveShape(runs[0].moments), ended = runs[0].t.length <= given.live.steps;
  element("note").textContent = [
    missing ? "No body has these moments: none may exceed the sum of the other two" : "", ended ? "A step failed; the motion ends there" : "",
  ].filter(Boolean).join(". ");
}
