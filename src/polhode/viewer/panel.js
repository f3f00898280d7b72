// A panel: one trajectory.

/** The factor that draws the largest angular velocity of a run 1.6 long, and its energy ellipsoid within the picture. */
function drawingScale(run) {
  let spin = 1e-300, energy = 0;
  for (let i = 0; i < run.t.length; i++) {
    const momentum = momentumOf(run, i), omega = omegaOf(run, momentum);
    spin = Math.max(spin, omega.length());
    energy = Math.max(energy, omega.dot(momentum));
  }
  const least = Math.min(...run.moments);
  const longest = run.free && least > 0 ? Math.sqrt(energy / least) : 0;
  return Math.min(1.6 / spin, 2.15 / Math.max(longest, 1e-300));
}

function words(kind, name) {
  const made = document.createElement(kind);
  made.className = name;
  return made;
}

function lightedScene() {
  const scene = new THREE.Scene();
  scene.add(new THREE.HemisphereLight("#ffffff", "#777788", 2.2));
  const sun = new THREE.DirectionalLight("#ffffff", 1.6);
  sun.position.set(3, 5, 4);
  scene.add(sun);
  return scene;
}

/** A word at a place of the scene; `where` returns the place. */
function placedLabel(kind, text, ink, box, where) {
  const tag = words("i", "label");
  tag.textContent = text;
  if (ink) tag.style.color = ink;
  box.append(tag);
  return { kind, tag, where };
}

/** The names of three axes; `at` returns the place of a name from the end of its axis. */
const axisLabels = (kind, names, three, box, at) =>
  three.children.map((one, i) => placedLabel(kind, names[i], AXES[i], box, () => at(one.end.clone())));

function panelFor(run, number) {
  const colour = given.colours[number % given.colours.length];
  const scale = drawingScale(run);
  const scene = lightedScene();
  const body = new THREE.Group();
  scene.add(body);
  const parts = Object.fromEntries(KINDS.map(([kind]) => [kind, []]));
  const put = (kind, where, thing) => { where.add(thing); parts[kind].push(thing); return thing; };

  const principal = new THREE.Group();
  principal.quaternion.copy(run.principal);
  body.add(principal);
  const empty = run.moments.findIndex((i) => !(i > 0));
  const rolling = run.free && empty < 0 && new THREE.Mesh(
    octants("#9ecae1", "#fdd0a2"),
    new THREE.MeshStandardMaterial({ vertexColors: true, transparent: true, opacity: run.shape ? 0.25 : 0.7, depthWrite: !run.shape, roughness: 0.8 }));
  if (rolling) put(run.shape ? "polhode" : "body", principal, rolling);
  if (run.shape) put("body", body, shape(run, colour));
  else if (!rolling) put("body", principal, rod(empty, colour));
  const bodyAxes = put("axes", body, axes(1.55, 0.014));
  const corner = put("space", scene, axes(0.5, 0.012));

  const times = pathTimes(run), omega = [], inBody = [], inSpace = [];
  for (const time of times) {
    const state = stateAt(run, time);
    omega.push(state.omega.toArray());
    const w = state.omega.multiplyScalar(scale);
    inBody.push(w.x, w.y, w.z);
    w.applyQuaternion(state.attitude);
    inSpace.push(w.x, w.y, w.z);
  }
  const faint = [put("polhode", body, path(inBody, 0.3)), put("herpolhode", scene, path(inSpace, 0.3))];
  const trails = [put("polhode", body, trail(inBody, OMEGA)), put("herpolhode", scene, trail(inSpace, TRAIL))];
  const plane = run.free && put("herpolhode", scene, new THREE.Mesh(
    new THREE.CircleGeometry(2, 64),
    new THREE.MeshBasicMaterial({ color: "#8888a0", transparent: true, opacity: 0.16, side: THREE.DoubleSide, depthWrite: false })));
  const spin = put("vectors", scene, arrow(OMEGA, 0.022));
  const momentum = put("vectors", scene, arrow(theme().L, 0.022));
  const pull = run.pull && addPull(run, times, put, scene, body);
  if (pull) {
    faint.push(...pull.faint);
    trails.push(pull.trail);
  }

  const box = words("div", "panel");
  const name = words("b", "name");
  name.textContent = run.label;
  name.style.borderColor = colour;
  const how = words("span", "how"), key = words("span", "key"), said = words("span", "said"), text = words("div", "text");
  how.textContent = run.how;
  const velocity = words("span", "entry"), amount = words("span", "entry");
  [velocity.textContent, velocity.style.color, amount.textContent] = ["ω angular velocity", OMEGA, "L angular momentum"];
  key.append(velocity, amount);
  parts.vectors.push({ set visible(on) { key.hidden = !on; } });
  text.append(name, how, key, said);
  box.append(text);
  document.getElementById("panels").append(box);

  const labels = [
    ...axisLabels("axes", "123", bodyAxes, box, (end) => end.multiplyScalar(1.07).applyQuaternion(body.quaternion)),
    ...axisLabels("space", "xyz", corner, box, (end) => end.multiplyScalar(1.25).add(corner.position)),
    placedLabel("vectors", "ω", OMEGA, box, () => spin.end.clone().addScaledVector(spin.end.clone().normalize(), 0.14)),
    placedLabel("vectors", "L", "", box, () => momentum.end.clone().multiplyScalar(1.07)),
  ];
  if (pull) labels.push(placedLabel("pull", run.pull.name, PULL, box, () => pull.end.clone()));

  let at = null;
  function paint() {
    momentum.paint(theme().L);
    amount.style.color = theme().L;
    for (const line of faint) line.material.color.set(theme().faint);
  }

  function show(time) {
    const state = stateAt(run, time);
    body.quaternion.copy(state.attitude);
    const size = state.L.length();
    spin.point(state.omega.clone().applyQuaternion(state.attitude).multiplyScalar(scale));
    momentum.point(size > 0 ? state.L.clone().multiplyScalar(1.9 / size) : state.L);
    if (rolling) rolling.scale.set(...run.moments.map((i) => Math.max(1e-3, scale * Math.sqrt(Math.max(0, state.twice) / i))));
    if (plane) plane.visible = shown.herpolhode && size > 0;
    if (plane && size > 0) {
      const normal = state.L.clone().divideScalar(size);
      plane.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal);
      plane.position.copy(normal.multiplyScalar(scale * state.twice / size));
    }
    const [done] = frame(times, time);
    for (const line of trails) line.upTo(done);
    const q = state.attitude, last = run.t[run.t.length - 1];
    said.textContent = [pull ? anglesAt(pull.angles, time) : "", time > last ? `ended at t = ${Number(last.toPrecision(6))}` : ""].filter(Boolean).join("\n");
    at = { q: [q.w, q.x, q.y, q.z], omega: state.omega.toArray(), L: state.L.toArray(), energy: run.energy[state.index], spatial: run.spatial[state.index] };
    return state;
  }
  /** The state that is shown, in numbers. */
  const inNumbers = () => {
    const list = (values) => `(${values.map((x) => x.toPrecision(6)).join(", ")})`, change = run.conserves ? "error" : "change";
    return `${run.label}\n  attitude q, scalar first   ${list(at.q)}\n  angular velocity ω, body    ${list(at.omega)}`
      + `\n  angular momentum L, space   ${list(at.L)}\n  relative ${change} of energy    ${at.energy.toExponential(1)}`
      + (run.free ? `\n  relative error of L         ${at.spatial.toExponential(1)}` : "");
  };
  const attitudes = () => [[body.quaternion.w, body.quaternion.x, body.quaternion.y, body.quaternion.z]];
  return { run, scene, body, parts, box, show, paint, colour, corner, labels, scale, plane, spin, t: run.t, attitudes, pull, text, times, omega, inNumbers, arrows: [spin, momentum],
    polhode: inBody, herpolhode: inSpace };
}
