// The trajectories, and the time in which they are shown.

let runs = given.live ? [liveRun()] : given.runs.map((run) => ({
  ...run, t: numbers(run.t), quaternion: numbers(run.quaternion), momentum: numbers(run.momentum),
  energy: numbers(run.energy_change), spatial: numbers(run.momentum_change),
  principal: new THREE.Quaternion(run.axes[1], run.axes[2], run.axes[3], run.axes[0]),
}));
const clocks = given.many ? [numbers(given.many.t)] : runs.map((run) => run.t);
const START = Math.min(...clocks.map((t) => t[0]));
const END = Math.max(...clocks.map((t) => t[t.length - 1]));
