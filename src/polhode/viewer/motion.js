// The motion between the states of a trajectory.

/** The last place in a rising list at or before a time, and the fraction of the way to the next. */
function frame(t, time) {
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
const momentumOf = (run, i) => new THREE.Vector3(run.momentum[3 * i], run.momentum[3 * i + 1], run.momentum[3 * i + 2]);

/** omega = I^-1 Pi by the principal axes; about an axis without a moment a body does not turn. */
function omegaOf(run, momentum) {
  const w = momentum.clone().applyQuaternion(run.principal.clone().conjugate());
  return w.set(...run.moments.map((moment, i) => (moment > 0 ? w.getComponent(i) / moment : 0))).applyQuaternion(run.principal);
}

/** The quaternion of a rotation vector. */
function turn(v) {
  const angle = v.length(), s = angle > 1e-9 ? Math.sin(angle / 2) / angle : 0.5;
  return new THREE.Quaternion(s * v.x, s * v.y, s * v.z, Math.cos(angle / 2));
}

/** The rotation vector of a quaternion, with that number of whole turns which brings it nearest to a guess. */
function rotationVector(q, guess) {
  const v = new THREE.Vector3(q.x, q.y, q.z), size = v.length();
  const axis = size > 1e-12 ? v.divideScalar(size) : guess.clone().normalize();
  const angle = 2 * Math.atan2(size, q.w), whole = 2 * Math.PI;
  return axis.multiplyScalar(angle + whole * Math.round((guess.dot(axis) - angle) / whole));
}

/**
 * The attitude between two states: the cubic with their attitudes and angular velocities, q exp(b1 w1) exp(b2 w2) exp(b3 w3) with the sums
 * b of Bernstein's polynomials (Kim, Kim and Shin 1995). How often the body turns in between follows from the velocities.
 */
function attitudeBetween(run, i, part) {
  const q = quaternionOf(run, i);
  if (part === 0) return q;
  const third = (run.t[i + 1] - run.t[i]) / 3;
  const first = omegaOf(run, momentumOf(run, i)).multiplyScalar(third);
  const last = omegaOf(run, momentumOf(run, i + 1)).multiplyScalar(third);
  const rest = turn(first).conjugate().multiply(q.clone().conjugate()).multiply(quaternionOf(run, i + 1)).multiply(turn(last).conjugate());
  const middle = rotationVector(rest, first.clone().add(last).multiplyScalar(0.5));
  q.multiply(turn(first.multiplyScalar(1 - (1 - part) ** 3)));
  q.multiply(turn(middle.multiplyScalar(part * part * (3 - 2 * part))));
  return q.multiply(turn(last.multiplyScalar(part ** 3))).normalize();
}

/** The momentum in space of a state, and its rate by the parabola through this state and its neighbours. */
const spaceMomentum = (run, i) => momentumOf(run, i).applyQuaternion(quaternionOf(run, i));
function momentumRate(run, i) {
  const last = run.t.length - 1, j = Math.min(Math.max(i, 1), last - 1);
  if (last < 2) return spaceMomentum(run, last).sub(spaceMomentum(run, 0)).divideScalar(run.t[last] - run.t[0]);
  const h = run.t[j] - run.t[j - 1], k = run.t[j + 1] - run.t[j], at = run.t[i] - run.t[j];
  if (!(h > 0 && k > 0)) return new THREE.Vector3();
  const middle = spaceMomentum(run, j);
  const left = middle.clone().sub(spaceMomentum(run, j - 1)).divideScalar(h), right = spaceMomentum(run, j + 1).sub(middle).divideScalar(k);
  const bend = right.clone().sub(left).divideScalar(h + k);
  return left.addScaledVector(bend, h + 2 * at);
}

/** The momentum in space between two states: Hermite's cubic. */
function spaceMomentumBetween(run, i, s) {
  if (s === 0) return spaceMomentum(run, i);
  const h = run.t[i + 1] - run.t[i], r = 1 - s;
  return spaceMomentum(run, i).multiplyScalar(r * r * (1 + 2 * s)).addScaledVector(spaceMomentum(run, i + 1), s * s * (3 - 2 * s))
    .addScaledVector(momentumRate(run, i), h * s * r * r).addScaledVector(momentumRate(run, i + 1), -h * s * s * r);
}

/** The state at a time. */
function stateAt(run, time) {
  const [i, part] = frame(run.t, time);
  const attitude = attitudeBetween(run, i, part), L = spaceMomentumBetween(run, i, part);
  const momentum = part > 0 ? L.clone().applyQuaternion(attitude.clone().conjugate()) : momentumOf(run, i);
  const omega = omegaOf(run, momentum);
  return { index: i, attitude, omega, momentum, L, twice: omega.dot(momentum) };
}

const POINTS = 40000; // of the paths of all trajectories together, unless there are more states
const SEGMENT = 0.1; // radians that a body turns between two points of a path

/** Times of the points of a run's paths: its states, and as many between as make curves of them. */
function pathTimes(run) {
  const pieces = [];
  let total = 1;
  for (let i = 0; i + 1 < run.t.length; i++) {
    const angle = omegaOf(run, momentumOf(run, i)).length() * (run.t[i + 1] - run.t[i]);
    pieces.push(Math.max(1, Math.min(200, Math.ceil(angle / SEGMENT))));
    total += pieces[i];
  }
  const share = Math.min(1, POINTS / runs.length / total);
  const times = [];
  pieces.forEach((number, i) => {
    const kept = Math.ceil(number * share);
    for (let k = 0; k < kept; k++) times.push(run.t[i] + (run.t[i + 1] - run.t[i]) * k / kept);
  });
  times.push(run.t[run.t.length - 1]);
  return times;
}
