// A body on which a uniform field pulls: its axis and the path of that on a sphere, the ground, the arrow of gravity.

const SPHERE = 1.6; // the radius on which the axis leaves its path; bodies reach 1.25
const AXIS = "#b8860b", PULL = "#a5652a";

const vectorOf = (list) => new THREE.Vector3(...list);

/** Circles of latitude and meridians about an axis, as faint lines; of the upper half alone if a top stands on the ground. */
function graticule(up, radius, upper) {
  const group = new THREE.Group();
  const turn = new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 0, 1), up);
  const circle = (point, whole = 2 * Math.PI) => {
    const points = [];
    for (let k = 0; k <= 96; k++) points.push(...point(whole * k / 96).applyQuaternion(turn).multiplyScalar(radius).toArray());
    group.add(path(points, 0.13));
  };
  for (const height of upper ? [30, 60] : [-60, -30, 0, 30, 60]) {
    const c = Math.cos(height * Math.PI / 180), s = Math.sin(height * Math.PI / 180);
    circle((a) => new THREE.Vector3(c * Math.cos(a), c * Math.sin(a), s));
  }
  for (let k = 0; k < 6; k++) {
    const c = Math.cos(k * Math.PI / 6), s = Math.sin(k * Math.PI / 6);
    circle((a) => new THREE.Vector3(c * Math.cos(a), s * Math.cos(a), Math.sin(a)), upper ? Math.PI : 2 * Math.PI);
  }
  return group;
}

/** The ground below a top that stands on its pivot; a body that hangs has a post to hang on. */
function ground(up, stands) {
  const group = new THREE.Group();
  const level = stands ? -0.01 : -1.75;
  const disc = new THREE.Mesh(
    new THREE.CircleGeometry(1.9, 72),
    new THREE.MeshStandardMaterial({ color: "#a89f8d", roughness: 1, transparent: true, opacity: 0.55, side: THREE.DoubleSide, depthWrite: false }));
  disc.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), up);
  disc.position.copy(up).multiplyScalar(level);
  const metal = new THREE.MeshStandardMaterial({ color: "#555c66", roughness: 0.5, metalness: 0.3 });
  group.add(disc, new THREE.Mesh(new THREE.SphereGeometry(0.05, 24, 16), metal));
  if (!stands) {
    const post = new THREE.Mesh(new THREE.CylinderGeometry(0.02, 0.02, -level, 16), metal);
    post.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), up);
    post.position.copy(up).multiplyScalar(level / 2);
    group.add(post);
  }
  return group;
}

/** Everything that a pull adds to a panel; what it returns says where the labels are. */
function addPull(run, times, put, scene, body) {
  const arm = vectorOf(run.pull.arm), down = vectorOf(run.pull.down), up = down.clone().negate();
  const points = [], angles = axisAngles(run, times, arm, up, points);
  const lowest = Math.cos(Math.PI / 180 * angles.tilt.reduce((most, x) => Math.max(most, x), 0));
  const stands = run.pull.weight && lowest > 0.1;
  const faint = put("trace", scene, path(points, 0.3)), bold = put("trace", scene, trail(points, AXIS));
  const stand = put("trace", body, arrow(AXIS, 0.016));
  stand.point(arm.clone().multiplyScalar(SPHERE));
  const lines = put("trace", scene, graticule(up, SPHERE, stands));
  if (run.pull.weight) put("pull", scene, ground(up, stands));
  const aside = new THREE.Vector3().crossVectors(up, Math.abs(up.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0)).normalize();
  const from = aside.multiplyScalar(-1.75).addScaledVector(up, run.pull.weight ? 1.6 : 0.4).addScaledVector(down, run.pull.weight ? 0 : -0.4);
  const force = put("pull", scene, arrow(PULL, 0.03));
  force.position.copy(from);
  force.point(down.clone().multiplyScalar(0.8));
  return { angles, stands, weight: run.pull.weight, faint: [faint, ...lines.children], trail: bold, points, end: from.addScaledVector(down, 0.95) };
}

/**
 * Tilt of the arm from the vertical in degrees, its precession about the vertical since the start in turns, and the spin ω·c about the arm:
 * θ, φ and ω3 of the symmetric top (Goldstein, Poole and Safko 2002, section 5.7). The points of its path are appended to `points`.
 */
function axisAngles(run, times, arm, up, points) {
  const east = new THREE.Vector3().crossVectors(up, new THREE.Vector3().setComponent(Math.abs(up.x) < 0.9 ? 0 : 1, 1)).normalize();
  const north = new THREE.Vector3().crossVectors(up, east);
  const found = { times, tilt: [], precession: [], spin: [] };
  let before = null, turns = 0;
  for (const time of times) {
    const state = stateAt(run, time), tip = arm.clone().applyQuaternion(state.attitude);
    const [x, y, z] = [tip.dot(east), tip.dot(north), tip.dot(up)], azimuth = Math.atan2(y, x) / (2 * Math.PI);
    if (before !== null) turns += azimuth - before - Math.round(azimuth - before);
    before = azimuth;
    found.tilt.push(Math.atan2(Math.hypot(x, y), z) * 180 / Math.PI);
    found.precession.push(turns);
    found.spin.push(state.omega.dot(arm));
    points.push(...tip.multiplyScalar(SPHERE).toArray());
  }
  return found;
}

/** The angles of a top in words. */
function anglesAt({ times, tilt, precession, spin }, time) {
  const [index] = frame(times, time);
  return `tilt ${tilt[index].toFixed(2)}°\nprecession ${precession[index].toFixed(3)} turns\nspin ${spin[index].toPrecision(4)}`;
}
