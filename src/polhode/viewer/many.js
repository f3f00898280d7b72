// Many bodies in one scene, coloured by a number of each.

const SHADES = 32;

/** Attitudes and places of many bodies over time. */
function crowdOf(data) {
  const floats = (text) => (text ? new Float32Array(bytes(text)) : null);
  return { ...data, t: numbers(data.t), quaternion: floats(data.quaternion), positions: floats(data.positions), values: floats(data.values) };
}

/** Materials of the colours of the scale, light and dark. */
function shades(colours) {
  return Array.from({ length: SHADES }, (_, k) => {
    const at = k / (SHADES - 1) * (colours.length - 1), low = Math.min(colours.length - 2, Math.floor(at));
    return materials(new THREE.Color(colours[low]).lerp(new THREE.Color(colours[low + 1]), at - low));
  });
}

function boxLines(lengths) {
  const group = new THREE.Group();
  const edge = (from, to) => group.add(path([...from, ...to].map((x, i) => x * lengths[i % 3]), 0.4));
  for (const a of [0, 1]) {
    for (const b of [0, 1]) {
      edge([0, a, b], [1, a, b]);
      edge([a, 0, b], [a, 1, b]);
      edge([a, b, 0], [a, b, 1]);
    }
  }
  return group;
}

function crowdPanel(many) {
  const scene = lightedScene(), inner = new THREE.Group();
  scene.add(inner);
  inner.scale.setScalar(many.scale);
  inner.position.set(...many.centre.map((x) => -x * many.scale));
  const palette = shades(given.ramp), looks = many.shapes.map((parts) => parts.map(geometryOf));
  const bodies = Array.from({ length: many.number }, (_, i) => {
    const group = new THREE.Group();
    for (const geometry of looks[many.look[i]]) group.add(new THREE.Mesh(geometry, palette[0]));
    inner.add(group);
    return group;
  });
  const faint = [], parts = { body: [...bodies], space: [] };
  if (many.box) {
    const edges = boxLines(many.box);
    faint.push(...edges.children);
    inner.add(edges);
  }
  const corner = axes(0.5, 0.012);
  scene.add(corner);
  parts.space.push(corner);

  const box = words("div", "panel"), name = words("b", "name"), bar = words("div", "scale");
  name.textContent = many.label;
  name.style.borderColor = "#888888";
  document.body.classList.add("many");
  box.append(name);
  if (many.values) {
    const [low, high] = many.range.map((x) => `${Number(x.toPrecision(3))}`);
    const ramp = words("span", "ramp");
    ramp.style.background = `linear-gradient(to right, ${given.ramp.join(", ")})`;
    bar.append(Object.assign(words("span", "end"), { textContent: low }), ramp, Object.assign(words("span", "end"), { textContent: high }),
      Object.assign(words("span", "what"), { textContent: many.statistic }));
    box.append(bar);
  }
  document.getElementById("panels").append(box);

  const quaternion = (i, k) => {
    const at = 4 * (i * many.number + k), q = many.quaternion;
    return new THREE.Quaternion(q[at + 1], q[at + 2], q[at + 3], q[at]);
  };
  const moves = many.positions && many.positions.length > 3 * many.number;
  const place = (i, k, part, target) => {
    const at = 3 * ((moves ? i * many.number : 0) + k);
    for (let c = 0; c < 3; c++) {
      let step = moves && part > 0 ? many.positions[at + 3 * many.number + c] - many.positions[at + c] : 0;
      if (many.box) step -= many.box[c] * Math.round(step / many.box[c]); // the nearest image
      target.setComponent(c, many.positions[at + c] + part * step);
    }
  };
  function show(time) {
    const [i, part] = frame(many.t, time);
    bodies.forEach((group, k) => {
      group.visible = shown.body && Number.isFinite(many.quaternion[4 * (i * many.number + k)]);
      if (!group.visible) return;
      group.quaternion.copy(quaternion(i, k));
      if (part > 0) group.quaternion.slerp(quaternion(i + 1, k), part);
      place(i, k, part, group.position);
      const value = many.values ? many.values[(many.values.length > many.number ? i * many.number : 0) + k] : 0;
      const share = Math.min(1, Math.max(0, (value - many.range[0]) / (many.range[1] - many.range[0] || 1)));
      for (const mesh of group.children) mesh.material = palette[Math.round(share * (SHADES - 1))];
    });
  }
  const labels = axisLabels("space", "xyz", corner, box, (end) => end.multiplyScalar(1.25).add(corner.position));
  const paint = () => { for (const line of faint) line.material.color.set(theme().faint); };
  const attitudes = () => bodies.map(({ quaternion: q }) => [q.w, q.x, q.y, q.z]);
  const places = () => bodies.map((group) => group.position.toArray());
  return { scene, parts, box, show, paint, corner, labels, t: many.t, attitudes, places, colour: "#888888" };
}
