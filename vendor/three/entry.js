// What the viewer uses of three.js; `make three` bundles it to src/polhode/viewer/three.js.
export {
  Box3, BoxGeometry, BufferGeometry, CircleGeometry, Color, ConeGeometry, CylinderGeometry, DirectionalLight, DoubleSide, Float32BufferAttribute,
  Group, HemisphereLight, Line, LineBasicMaterial, Mesh, MeshBasicMaterial, MeshStandardMaterial, PerspectiveCamera, Quaternion, Scene,
  SphereGeometry, TorusGeometry, Uint32BufferAttribute, Vector2, Vector3, WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
export { Line2 } from "three/addons/lines/Line2.js";
export { LineGeometry } from "three/addons/lines/LineGeometry.js";
export { LineMaterial } from "three/addons/lines/LineMaterial.js";
