// The stage: all panels, seen by one camera.

const element = (id) => document.getElementById(id);
const free = runs.every((run) => run.free), pulled = runs.some((run) => run.pull);
const KINDS = given.many ? [["body", "Bodies"], ["space", "Space axes"]] : [
  ["body", "Body"], ["axes", "Body axes"], ["vectors", "ω and L"],
  ["polhode", free ? "Polhode" : "Path of ω in the body"], ["herpolhode", free ? "Herpolhode" : "Path of ω in space"], ["space", "Space axes"],
  ...(pulled ? [["trace", "Path of the axis"], ["pull", "Ground and pull"]] : []),
];
const OFF = pulled ? ["axes", "polhode", "herpolhode"] : []; // at first: the path of the axis is what a top shows
const shown = Object.fromEntries(KINDS.map(([kind]) => [kind, !OFF.includes(kind)]));
let panels = given.many ? [crowdPanel(crowdOf(given.many))] : runs.map(panelFor);

const FIELD_OF_VIEW = 35; // degrees
const canvas = element("scene");
const renderer = rendererFor(canvas);
const camera = new THREE.PerspectiveCamera(FIELD_OF_VIEW, 1, 0.1, 100);
const controls = new THREE.OrbitControls(camera, canvas);
controls.enableDamping = false;
controls.enablePan = false;
controls.minDistance = 2;
controls.maxDistance = 40;

/** What draws in three dimensions, or null where the browser cannot. */
function rendererFor(where) {
  try {
    const made = new THREE.WebGLRenderer({ canvas: where, antialias: true, preserveDrawingBuffer: true });
    made.setPixelRatio(Math.min(2, window.devicePixelRatio));
    made.setScissorTest(true);
    return made;
  } catch {
    return null;
  }
}

/** Up is the momentum where it stays, and the third axis of space where it does not. */
function firstView() {
  const up = new THREE.Vector3(...given.up);
  const aside = Math.abs(up.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
  const away = aside.addScaledVector(up, -aside.dot(up)).normalize();
  camera.up.copy(up);
  camera.position.copy(away.multiplyScalar(7.4).addScaledVector(up, 2.6));
  const pulls = panels.map((panel) => panel.pull).filter((pull) => pull && pull.weight);
  const middle = pulls.some((pull) => !pull.stands) ? -0.35 : pulls.length ? 0.75 : 0; // a top stands above its pivot, others hang
  controls.target.copy(up).multiplyScalar(middle);
  camera.position.add(controls.target);
  controls.update();
}

/** Look from further round, further up, or nearer. */
function lookFrom(round, rise, nearer) {
  camera.position.sub(controls.target);
  const right = new THREE.Vector3().crossVectors(camera.up, camera.position).normalize();
  camera.position.applyAxisAngle(camera.up, round);
  const height = camera.position.angleTo(camera.up);
  if (height - rise > 0.05 && height - rise < Math.PI - 0.05) camera.position.applyAxisAngle(right.applyAxisAngle(camera.up, round), -rise);
  camera.position.multiplyScalar(nearer).add(controls.target);
  controls.update();
  draw();
}

/** Show other trajectories. */
function replaceRuns(made) {
  for (const panel of panels) {
    panel.box.remove();
    panel.scene.traverse((thing) => { if (thing.geometry) thing.geometry.dispose(); });
  }
  runs = made;
  panels = runs.map(panelFor);
  measure();
}

/** What depends on the trajectories as a whole. */
function measure() {
  for (const panel of panels) for (const [kind, parts] of Object.entries(panel.parts)) for (const part of parts) part.visible = shown[kind];
  if (given.many) return;
  measureCharts();
}

/** So many columns that the panels become large and few places stay empty. */
function arrange() {
  const { width, height } = element("stage").getBoundingClientRect();
  const number = panels.length;
  let columns = 1, best = 0;
  for (let c = 1; c <= number; c++) {
    const rows = Math.ceil(number / c);
    const worth = Math.min(width / c, height / rows) * (1 - 0.3 * (1 - number / (c * rows)));
    if (worth > 1.0001 * best) [columns, best] = [c, worth];
  }
  element("panels").style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
  element("stage").style.minHeight = `${Math.max(16, 11 * Math.ceil(number / columns))}rem`;
}

function draw() {
  if (!renderer) return;
  const stage = element("stage").getBoundingClientRect();
  const size = renderer.getSize(new THREE.Vector2());
  if (size.x !== Math.floor(stage.width) || size.y !== Math.floor(stage.height)) renderer.setSize(Math.floor(stage.width), Math.floor(stage.height), false);
  renderer.setClearColor(theme().page);
  for (const panel of panels) {
    const r = panel.box.getBoundingClientRect();
    const [x, y] = [r.left - stage.left, stage.bottom - r.bottom];
    renderer.setViewport(x, y, r.width, r.height);
    renderer.setScissor(x, y, r.width, r.height);
    camera.aspect = r.width / r.height;
    camera.fov = FIELD_OF_VIEW * Math.max(1, 1 / camera.aspect); // a narrow panel still holds the whole body
    camera.updateProjectionMatrix();
    camera.updateMatrixWorld();
    const room = 0.85 / (9 * Math.tan(camera.fov * Math.PI / 360)); // for axes 0.5 long and their names, 9 away
    panel.corner.position.set(room / camera.aspect - 1, room - 1, 0.5).unproject(camera).sub(camera.position).setLength(9).add(camera.position);
    renderer.render(panel.scene, camera);
    placeLabels(panel, r);
  }
}

const GAP = 2; // pixels between two labels
const SHAFT = 5; // pixels between the middle of an arrow and a label

/** Put the labels at their places, and move those apart that would cover each other, the arrows or the words of the panel. */
function placeLabels(panel, { left, top, width, height }) {
  const places = [], pixels = (at) => [(at.project(camera).x + 1) / 2 * width, (1 - at.y) / 2 * height];
  for (const { kind, tag, where } of panel.labels) {
    const [x, y] = pixels(where()), seen = shown[kind] && x > 0 && x < width && y > 0 && y < height;
    tag.style.display = seen ? "" : "none";
    if (seen) places.push({ tag, x, y, w: tag.offsetWidth / 2, h: tag.offsetHeight / 2, gives: 1 });
  }
  const fixed = (panel.text ? [...panel.text.children] : []).map((one) => one.getBoundingClientRect()).filter((one) => one.width && one.height).map((one) =>
    ({ x: (one.left + one.right) / 2 - left, y: (one.top + one.bottom) / 2 - top, w: one.width / 2, h: one.height / 2, gives: 0 }));
  if (shown.vectors) for (const { end } of panel.arrows || []) beside(places, pixels(new THREE.Vector3()), pixels(end.clone()));
  spread([...places, ...fixed], width, height);
  for (const { tag, x, y } of places) tag.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
}

/** Move labels that an arrow from a to b would cover to its nearer side. */
function beside(places, a, b) {
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
  if (length < 1) return;
  const along = [(b[0] - a[0]) / length, (b[1] - a[1]) / length], right = [-along[1], along[0]];
  for (const place of places) {
    const from = [place.x - a[0], place.y - a[1]], far = from[0] * along[0] + from[1] * along[1], off = from[0] * right[0] + from[1] * right[1];
    const room = SHAFT + Math.abs(right[0]) * place.w + Math.abs(right[1]) * place.h;
    if (far < 0 || far > length || Math.abs(off) >= room) continue;
    const move = (off > 1 ? room : -room) - off;
    place.x += move * right[0];
    place.y += move * right[1];
  }
}

/** Move boxes x ± w, y ± h apart, each pair the shorter way; what does not give stays. */
function spread(boxes, width, height) {
  for (let pass = 0; pass < 20; pass++) {
    let moved = false;
    boxes.forEach((one, i) => boxes.slice(i + 1).forEach((other) => {
      const x = one.w + other.w + GAP - Math.abs(one.x - other.x), y = one.h + other.h + GAP - Math.abs(one.y - other.y), all = one.gives + other.gives;
      if (x <= 0 || y <= 0 || !all) return;
      const [axis, far] = x < y ? ["x", x] : ["y", y], side = other[axis] < one[axis] ? -1 : 1;
      one[axis] -= side * far * one.gives / all;
      other[axis] += side * far * other.gives / all;
      moved = true;
    }));
    for (const one of boxes) {
      if (!one.gives) continue;
      one.x = Math.min(width - one.w, Math.max(one.w, one.x));
      one.y = Math.min(height - one.h, Math.max(one.h, one.y));
    }
    if (!moved) break;
  }
}
