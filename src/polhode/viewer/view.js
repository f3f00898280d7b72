"use strict";
// The page's own code. One clock drives all panels; a panel is one trajectory; all panels share one camera.

const given = JSON.parse(document.getElementById("data").textContent);
const COLOURS = given.colours;
const element = (id) => document.getElementById(id);

// --- data ---------------------------------------------------------------------------------------------

function numbers(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Float64Array(bytes.buffer);
}

const runs = given.runs.map((run) => ({
  ...run, t: numbers(run.t), quaternion: numbers(run.quaternion), omega: numbers(run.omega), momentum: numbers(run.momentum),
  energy: numbers(run.energy_change), spatial: numbers(run.momentum_change), twice: numbers(run.twice_kinetic),
}));
const START = Math.min(...runs.map((run) => run.t[0]));
const END = Math.max(...runs.map((run) => run.t[run.t.length - 1]));

/** The last frame at or before a time, and the fraction of the way to the next. */
function frame(run, time) {
  const t = run.t;
  let low = 0, high = t.length - 1;
  if (time >= t[high]) return [high, 0];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (t[middle] <= time) low = middle; else high = middle;
  }
  return [low, t.length > 1 ? Math.max(0, (time - t[low]) / (t[high] - t[low])) : 0];
}

const quaternionOf = (run, i) =>
  new THREE.Quaternion(run.quaternion[4 * i + 1], run.quaternion[4 * i + 2], run.quaternion[4 * i + 3], run.quaternion[4 * i]);
const vectorOf = (array, i) => new THREE.Vector3(array[3 * i], array[3 * i + 1], array[3 * i + 2]);

function stateAt(run, time) {
  const [i, part] = frame(run, time);
  const j = Math.min(i + 1, run.t.length - 1);
  return {
    index: i,
    attitude: quaternionOf(run, i).slerp(quaternionOf(run, j), part),
    omega: vectorOf(run.omega, i).lerp(vectorOf(run.omega, j), part),
    momentum: vectorOf(run.momentum, i).lerp(vectorOf(run.momentum, j), part),
    twice: run.twice[i] + part * (run.twice[j] - run.twice[i]),
  };
}

// --- things in a scene ----------------------------------------------------------------------------------

/** The factor that draws the largest angular velocity of a run 1.6 long. */
function drawingScale(run) {
  let largest = 1e-300;
  for (let i = 0; i < run.t.length; i++) largest = Math.max(largest, Math.hypot(run.omega[3 * i], run.omega[3 * i + 1], run.omega[3 * i + 2]));
  return 1.6 / largest;
}

function path(points, colour, opacity) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
  const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: colour, transparent: opacity < 1, opacity }));
  line.frustumCulled = false;
  return line;
}

function arrow(colour, width) {
  const group = new THREE.Group();
  const material = new THREE.MeshStandardMaterial({ color: colour, roughness: 0.5 });
  const shaft = new THREE.Mesh(new THREE.CylinderGeometry(width, width, 1, 16).translate(0, 0.5, 0), material);
  const tip = new THREE.Mesh(new THREE.ConeGeometry(3 * width, 8 * width, 20).translate(0, -4 * width, 0), material);
  group.add(shaft, tip);
  group.point = (vector) => {
    const length = vector.length();
    group.visible = length > 1e-9;
    if (!group.visible) return;
    group.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), vector.clone().normalize());
    shaft.scale.set(1, length, 1);
    tip.position.set(0, length, 0);
  };
  return group;
}

function axes(length) {
  const group = new THREE.Group();
  ["#d62728", "#2ca02c", "#1f77b4"].forEach((colour, i) => {
    const one = arrow(colour, 0.012);
    one.point(new THREE.Vector3().setComponent(i, length));
    group.add(one);
  });
  return group;
}

/** A sphere whose octants are told apart, so that its turning is seen. */
function octants(light, dark) {
  const geometry = new THREE.SphereGeometry(1, 48, 32).toNonIndexed();
  const p = geometry.getAttribute("position");
  const colours = [];
  for (let i = 0; i < p.count; i += 3) {
    const centre = [0, 1, 2].map((k) => p.getComponent(i, k) + p.getComponent(i + 1, k) + p.getComponent(i + 2, k));
    const colour = new THREE.Color(centre[0] * centre[1] * centre[2] > 0 ? light : dark);
    for (let k = 0; k < 3; k++) colours.push(colour.r, colour.g, colour.b);
  }
  geometry.setAttribute("color", new THREE.Float32BufferAttribute(colours, 3));
  return geometry;
}

const SHAPES = {
  box: (d) => new THREE.BoxGeometry(d[0], d[1], d[2]),
  ellipsoid: (d) => octants("#7fb3d5", "#f5cba7").scale(d[0], d[1], d[2]),
  cylinder: (d) => new THREE.CylinderGeometry(d[0], d[0], d[1], 48).rotateX(Math.PI / 2),
  cone: (d) => new THREE.ConeGeometry(d[0], d[1], 48).rotateX(Math.PI / 2).translate(0, 0, d[1] / 4), // centre of mass: a quarter up
  torus: (d) => new THREE.TorusGeometry(d[0], d[1], 24, 64),
  sphere: (d) => octants("#7fb3d5", "#f5cba7").scale(d[0], d[0], d[0]),
};

function partMesh(part, colour) {
  let geometry;
  if (part.kind === "mesh") {
    geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(part.vertices.flat(), 3));
    geometry.setIndex(part.faces.flat());
    geometry = geometry.toNonIndexed();
    geometry.computeVertexNormals();
  } else {
    geometry = SHAPES[part.kind](part.size);
  }
  const coloured = geometry.hasAttribute("color");
  const material = new THREE.MeshStandardMaterial({ color: coloured ? "#ffffff" : colour, vertexColors: coloured, roughness: 0.6, metalness: 0.1, side: THREE.DoubleSide });
  const mesh = new THREE.Mesh(geometry, material);
  mesh.position.set(...part.position);
  mesh.quaternion.set(part.quaternion[1], part.quaternion[2], part.quaternion[3], part.quaternion[0]);
  return mesh;
}

/** The body as its shape, drawn about as large as the unit sphere. */
function shape(parts, colour) {
  const inner = new THREE.Group();
  for (const part of parts) inner.add(partMesh(part, colour));
  const box = new THREE.Box3().setFromObject(inner);
  const reach = Math.max(box.min.length(), box.max.length());
  inner.scale.setScalar(1.1 / (reach || 1));
  return inner;
}

// --- a panel: one trajectory ------------------------------------------------------------------------------

function panelFor(run, number) {
  const colour = COLOURS[number % COLOURS.length];
  const scale = drawingScale(run);
  const scene = new THREE.Scene();
  scene.add(new THREE.HemisphereLight("#ffffff", "#777788", 2.2));
  const sun = new THREE.DirectionalLight("#ffffff", 1.6);
  sun.position.set(3, 5, 4);
  scene.add(sun);
  const body = new THREE.Group();
  scene.add(body);
  const parts = { body: [], axes: [], vectors: [], polhode: [], herpolhode: [], space: [] };
  const put = (kind, where, thing) => { where.add(thing); parts[kind].push(thing); return thing; };

  const principal = new THREE.Group();
  principal.quaternion.set(run.axes[1], run.axes[2], run.axes[3], run.axes[0]);
  body.add(principal);
  const rolling = run.moments.every((i) => i > 0) && new THREE.Mesh(
    octants("#9ecae1", "#fdd0a2"),
    new THREE.MeshStandardMaterial({ vertexColors: true, transparent: true, opacity: run.shape ? 0.3 : 0.7, depthWrite: !run.shape, roughness: 0.8 }));
  if (rolling) put(run.shape ? "polhode" : "body", principal, rolling);
  if (run.shape) put("body", body, shape(run.shape, colour));
  put("axes", body, axes(1.45));
  const corner = put("space", scene, axes(0.5));

  const polhode = [], herpolhode = [];
  for (let i = 0; i < run.t.length; i++) {
    const w = vectorOf(run.omega, i).multiplyScalar(scale);
    polhode.push(w.x, w.y, w.z);
    w.applyQuaternion(quaternionOf(run, i));
    herpolhode.push(w.x, w.y, w.z);
  }
  put("polhode", body, path(polhode, "#000000", 0.25));
  const done = put("polhode", body, path(polhode, "#c0392b", 1));
  put("herpolhode", scene, path(herpolhode, "#888888", 0.35));
  const trail = put("herpolhode", scene, path(herpolhode, "#8e44ad", 1));
  const plane = put("herpolhode", scene, new THREE.Mesh(
    new THREE.CircleGeometry(2, 64),
    new THREE.MeshBasicMaterial({ color: "#888899", transparent: true, opacity: 0.12, side: THREE.DoubleSide, depthWrite: false })));
  const spin = put("vectors", scene, arrow("#c0392b", 0.022));
  const momentum = put("vectors", scene, arrow("#2c3e50", 0.022));

  const box = document.createElement("div");
  box.className = "panel";
  const name = document.createElement("b");
  name.textContent = run.label;
  name.style.borderColor = colour;
  const said = document.createElement("span");
  box.append(name, said);
  element("panels").append(box);

  function show(time) {
    const state = stateAt(run, time);
    body.quaternion.copy(state.attitude);
    const w = state.omega.clone().applyQuaternion(state.attitude).multiplyScalar(scale);
    const L = state.momentum.clone().applyQuaternion(state.attitude);
    const size = L.length();
    spin.point(w);
    momentum.point(size > 0 ? L.clone().multiplyScalar(1.9 / size) : L);
    if (rolling) rolling.scale.set(...run.moments.map((i) => Math.max(1e-3, scale * Math.sqrt(state.twice / i))));
    plane.visible = shown.herpolhode && size > 0;
    if (size > 0) {
      const normal = L.clone().divideScalar(size);
      plane.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal);
      plane.position.copy(normal.multiplyScalar(scale * state.twice / size));
    }
    done.geometry.setDrawRange(0, state.index + 1);
    trail.geometry.setDrawRange(0, state.index + 1);
    const q = state.attitude;
    said.textContent = `q = ${[q.w, q.x, q.y, q.z].map((x) => x.toFixed(3)).join(", ")}\n`
      + `|ω| = ${state.omega.length().toPrecision(4)}\nΔE/E = ${run.energy[state.index].toExponential(1)}\n|ΔL|/|L| = ${run.spatial[state.index].toExponential(1)}`;
    return state;
  }
  return { run, scene, body, parts, box, show, colour, corner };
}

// --- the stage ---------------------------------------------------------------------------------------------

const KINDS = [
  ["body", "Body"], ["axes", "Body axes"], ["vectors", "ω (red) and L (dark)"],
  ["polhode", "Polhode"], ["herpolhode", "Herpolhode"], ["space", "Space axes"],
];
const shown = Object.fromEntries(KINDS.map(([kind]) => [kind, true]));
const panels = runs.map(panelFor);
const columns = Math.ceil(Math.sqrt(panels.length * (window.innerWidth > 700 ? 1.6 : 0.6)));
element("panels").style.gridTemplateColumns = `repeat(${Math.min(columns, panels.length)}, 1fr)`;

const FIELD_OF_VIEW = 35; // degrees
const canvas = element("scene");
const renderer = new THREE.WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
renderer.setPixelRatio(Math.min(2, window.devicePixelRatio));
renderer.setScissorTest(true);
const camera = new THREE.PerspectiveCamera(FIELD_OF_VIEW, 1, 0.1, 100);
const controls = new THREE.OrbitControls(camera, canvas);
controls.enableDamping = false;

/** Up is the momentum where it stays, and the third axis of space where it does not. */
function firstView() {
  const up = new THREE.Vector3(...given.up);
  const aside = Math.abs(up.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
  const away = aside.addScaledVector(up, -aside.dot(up)).normalize();
  camera.up.copy(up);
  camera.position.copy(away.multiplyScalar(7.4).addScaledVector(up, 2.6));
  controls.target.set(0, 0, 0);
  controls.update();
}

function draw() {
  const { width, height } = element("stage").getBoundingClientRect();
  const size = renderer.getSize(new THREE.Vector2());
  if (size.x !== Math.floor(width) || size.y !== Math.floor(height)) renderer.setSize(Math.floor(width), Math.floor(height), false);
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  renderer.setClearColor(dark ? "#202329" : "#f4f6f8");
  const stage = element("stage").getBoundingClientRect();
  for (const panel of panels) {
    const r = panel.box.getBoundingClientRect();
    const [x, y] = [r.left - stage.left, stage.bottom - r.bottom];
    renderer.setViewport(x, y, r.width, r.height);
    renderer.setScissor(x, y, r.width, r.height);
    camera.aspect = r.width / r.height;
    camera.fov = FIELD_OF_VIEW * Math.max(1, 1 / camera.aspect); // a narrow panel still holds the whole body
    camera.updateProjectionMatrix();
    camera.updateMatrixWorld();
    panel.corner.position.set(-0.72, -0.7, 0.5).unproject(camera).sub(camera.position).setLength(9).add(camera.position);
    renderer.render(panel.scene, camera);
  }
}

// --- the chart ---------------------------------------------------------------------------------------------

const FLOOR = -17;

function chart(time) {
  const sheet = element("chart");
  const ratio = Math.min(2, window.devicePixelRatio), width = sheet.clientWidth, height = sheet.clientHeight;
  if (sheet.width !== Math.round(width * ratio)) { sheet.width = Math.round(width * ratio); sheet.height = Math.round(height * ratio); }
  const pen = sheet.getContext("2d");
  const ink = getComputedStyle(document.body).color;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const left = 52, right = width - 10, top = 20, bottom = height - 22;
  const highest = Math.max(FLOOR + 2, ...panels.flatMap(({ run }) => [run.energy, run.spatial].map((a) => Math.log10(a.reduce((x, y) => Math.max(x, y), 1e-17)))));
  const x = (t) => left + (right - left) * (END > START ? (t - START) / (END - START) : 0);
  const y = (value) => bottom - (bottom - top) * (Math.log10(Math.max(value, 1e-17)) - FLOOR) / (Math.ceil(highest) - FLOOR);
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = ink;
  pen.fillText("relative change since the start: energy (full line), momentum in space (dashed; a torque changes it)", left, 12);
  pen.strokeStyle = ink; pen.globalAlpha = 0.15; pen.setLineDash([]);
  for (let e = Math.ceil(highest); e >= FLOOR; e -= Math.max(1, Math.ceil((highest - FLOOR) / 5))) {
    pen.beginPath(); pen.moveTo(left, y(10 ** e)); pen.lineTo(right, y(10 ** e)); pen.stroke();
    pen.globalAlpha = 1; pen.fillText(`1e${e}`, 8, y(10 ** e) + 4); pen.globalAlpha = 0.15;
  }
  pen.globalAlpha = 1;
  pen.fillText(START.toPrecision(3), left, height - 6);
  pen.fillText(END.toPrecision(4), right - 40, height - 6);
  for (const panel of panels) {
    for (const [values, dash] of [[panel.run.energy, []], [panel.run.spatial, [4, 3]]]) {
      for (const [until, alpha] of [[END, 0.25], [time, 1]]) {
        pen.globalAlpha = alpha; pen.strokeStyle = panel.colour; pen.setLineDash(dash); pen.lineWidth = 1.4;
        pen.beginPath();
        const every = Math.max(1, Math.floor(values.length / (2 * width)));
        for (let i = 0; i < values.length && panel.run.t[i] <= until; i += every) pen.lineTo(x(panel.run.t[i]), y(values[i]));
        pen.stroke();
      }
    }
  }
  pen.globalAlpha = 0.7; pen.strokeStyle = ink; pen.setLineDash([]);
  pen.beginPath(); pen.moveTo(x(time), top); pen.lineTo(x(time), bottom); pen.stroke();
  pen.globalAlpha = 1;
}

// --- the clock ---------------------------------------------------------------------------------------------

const now = { time: START, playing: false, speed: given.speed, loop: true };
let before = null;

function refresh() {
  for (const panel of panels) panel.show(now.time);
  draw();
  chart(now.time);
  element("clock").textContent = `t = ${now.time.toFixed(END - START < 10 ? 3 : 2)}`;
  const share = END > START ? (now.time - START) / (END - START) : 0;
  element("scrub").value = Math.round(10000 * share);
  element("scrub").setAttribute("aria-valuetext", element("clock").textContent);
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

function pace(speed) {
  const known = [...element("speed").options].map((o) => Number(o.value));
  now.speed = known.reduce((a, b) => (Math.abs(Math.log(b / speed)) < Math.abs(Math.log(a / speed)) ? b : a));
  element("speed").value = String(now.speed);
}

// --- controls ----------------------------------------------------------------------------------------------

for (const speed of given.speeds) element("speed").add(new Option(`${speed} ×`, String(speed)));
KINDS.forEach(([kind, label], i) => {
  const box = document.createElement("label");
  const tick = Object.assign(document.createElement("input"), { type: "checkbox", checked: true, id: `show-${kind}` });
  box.append(tick, `${label}`);
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

const KEYS = {
  " ": () => play(!now.playing), Home: () => seek(START), End: () => seek(END), l: () => element("loop").click(), r: () => { firstView(); draw(); },
  "+": () => pace(2 * now.speed), "=": () => pace(2 * now.speed), "-": () => pace(now.speed / 2),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.tagName;
  if (field === "SELECT" || (field === "BUTTON" && event.key === " ") || (field === "INPUT" && event.target.type === "checkbox" && event.key === " ")) return;
  const kind = KINDS[Number(event.key) - 1];
  if (kind) toggle(kind[0], !shown[kind[0]]);
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") step(event.key === "ArrowRight" ? 1 : -1, event.shiftKey);
  else if (KEYS[event.key] || KEYS[event.key.toLowerCase()]) (KEYS[event.key] || KEYS[event.key.toLowerCase()])();
  else return;
  event.preventDefault();
});

/** One frame of the first trajectory, or a fiftieth of the run. */
function step(direction, far) {
  play(false);
  if (far) return seek(now.time + direction * (END - START) / 50);
  const run = runs[0], [i, part] = frame(run, now.time);
  const target = direction > 0 ? i + 1 : part > 0 ? i : i - 1;
  return seek(run.t[Math.min(run.t.length - 1, Math.max(0, target))]);
}

element("play").addEventListener("click", () => play(!now.playing));
element("scrub").addEventListener("input", () => { play(false); seek(START + (END - START) * element("scrub").value / 10000); });
element("speed").addEventListener("change", () => { now.speed = Number(element("speed").value); });
element("loop").addEventListener("change", () => { now.loop = element("loop").checked; });
controls.addEventListener("change", draw);
window.addEventListener("resize", refresh);
element("note").textContent = given.note;

window.polhode = {
  seek, play: () => play(true), pause: () => play(false),
  state: () => ({ ...now, attitudes: panels.map(({ body: { quaternion: q } }) => [q.w, q.x, q.y, q.z]) }),
};
pace(given.speed);
firstView();
refresh();
if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
