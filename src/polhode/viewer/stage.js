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
  measureDrift();
  measureAngles();
  stale = true;
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
    for (const { kind, tag, where } of panel.labels) {
      const at = where().project(camera);
      tag.style.display = shown[kind] && Math.abs(at.x) < 1 && Math.abs(at.y) < 1 ? "" : "none";
      tag.style.transform = `translate(${(at.x + 1) / 2 * r.width}px, ${(1 - at.y) / 2 * r.height}px) translate(-50%, -50%)`;
    }
  }
}
