// Things in a scene: arrows, axes, paths, bodies.

const INK = { light: { page: "#f4f6f8", L: "#22303c", faint: "#000000" }, dark: { page: "#202329", L: "#e8eaed", faint: "#ffffff" } };
const AXES = ["#D55E00", "#009E73", "#2b7bba"];
const OMEGA = "#c2185b", TRAIL = "#8e44ad";
const themes = window.matchMedia("(prefers-color-scheme: dark)");
const theme = () => INK[themes.matches ? "dark" : "light"];

/** A thin line through points. */
function path(points, opacity) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
  const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: theme().faint, transparent: true, opacity }));
  line.frustumCulled = false;
  return line;
}

/** A broad line through points, of which only the first ones are shown. */
function trail(points, colour) {
  const geometry = new THREE.LineGeometry();
  geometry.setPositions(points.length > 3 ? points : [...points, ...points]);
  const line = new THREE.Line2(geometry, new THREE.LineMaterial({ color: colour, linewidth: runs.length > 3 ? 1.5 : 2.2 }));
  line.frustumCulled = false;
  line.upTo = (index) => { geometry.instanceCount = Math.max(1, index); };
  return line;
}

function arrow(colour, width) {
  const group = new THREE.Group();
  const material = new THREE.MeshStandardMaterial({ color: colour, roughness: 0.5 });
  const shaft = new THREE.Mesh(new THREE.CylinderGeometry(width, width, 1, 16).translate(0, 0.5, 0), material);
  const tip = new THREE.Mesh(new THREE.ConeGeometry(3 * width, 8 * width, 20).translate(0, -4 * width, 0), material);
  group.add(shaft, tip);
  group.paint = (ink) => material.color.set(ink);
  group.end = new THREE.Vector3();
  group.point = (vector) => {
    const length = vector.length();
    group.end.copy(vector);
    shaft.visible = tip.visible = length > 1e-9;
    if (!shaft.visible) return;
    group.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), vector.clone().normalize());
    shaft.scale.set(1, length, 1);
    tip.scale.setScalar(Math.min(1, length / (16 * width)));
    tip.position.set(0, length, 0);
  };
  return group;
}

function axes(length, width) {
  const group = new THREE.Group();
  AXES.forEach((colour, i) => {
    const one = arrow(colour, width);
    one.point(new THREE.Vector3().setComponent(i, length));
    group.add(one);
  });
  return group;
}

/** A sphere whose octants are told apart, so that its turning is seen. */
function octants(light, dark) {
  const geometry = new THREE.SphereGeometry(1, 64, 48).toNonIndexed();
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

/** The triangles of a part of a body, in two groups of colours. */
function geometryOf(part) {
  const [light, dark] = [part.light, part.dark].map((text) => new Uint32Array(bytes(text)));
  let geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(new Float32Array(bytes(part.vertices)), 3));
  geometry.setIndex(new THREE.Uint32BufferAttribute([...light, ...dark], 1));
  if (part.normals) geometry.setAttribute("normal", new THREE.Float32BufferAttribute(new Float32Array(bytes(part.normals)), 3));
  else (geometry = geometry.toNonIndexed()).computeVertexNormals();
  geometry.addGroup(0, light.length, 0);
  geometry.addGroup(light.length, dark.length, 1);
  return geometry;
}

/** The two materials of a body. */
function materials(colour, hole = false) {
  const made = (ink) => new THREE.MeshStandardMaterial({
    color: ink, roughness: 0.6, metalness: 0.1, side: THREE.DoubleSide, transparent: hole, opacity: hole ? 0.35 : 1 });
  return hole ? [made("#222222"), made("#222222")] : [made(colour), made(new THREE.Color(colour).lerp(new THREE.Color("#ffffff"), 0.6))];
}

/** The body as its shape, drawn about as large as the unit sphere. */
function shape(run, colour) {
  const inner = new THREE.Group();
  for (const part of run.shape) {
    const mesh = new THREE.Mesh(geometryOf(part), materials(colour, part.hole));
    if (part.stretch) mesh.scale.set(...part.stretch);
    if (part.place) mesh.position.set(...part.place);
    inner.add(mesh);
  }
  inner.scale.setScalar(1.25 / run.reach);
  return inner;
}

/** A body whose matter lies on a line, the axis without a moment. */
function rod(empty, colour) {
  const mesh = new THREE.Mesh(
    new THREE.CylinderGeometry(0.05, 0.05, 2.2, 24), new THREE.MeshStandardMaterial({ color: colour, roughness: 0.6, metalness: 0.1 }));
  mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), new THREE.Vector3().setComponent(empty, 1));
  return mesh;
}
