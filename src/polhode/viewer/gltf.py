"""Moving bodies as binary glTF 2.0, for slides, Blender and web pages.

https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html. A file has one node for each body, with the meshes of its
shapes and an animation of its rotation. glTF has y up; the scene is turned accordingly.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..physics.triangles import Mesh
from ..physics.validate import quaternion_of

FLOAT, UNSIGNED = 5126, 5125
"""Component types of the specification, section 3.6.2.2: float32 and uint32."""
VERTICES, INDICES = 34962, 34963
"""Targets of buffer views, section 3.6.1.1."""
MAGIC, JSON_CHUNK, BINARY_CHUNK = 0x46546C67, 0x4E4F534A, 0x004E4942


class _Buffer:
    """The binary part of a file, with its accessors."""

    def __init__(self) -> None:
        self.data, self.views, self.accessors = bytearray(), list[dict[str, Any]](), list[dict[str, Any]]()

    def add(self, array: np.ndarray, target: int | None = None, bounds: bool = False) -> int:
        """Append an array of float32 or uint32; return the number of its accessor."""
        width = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[1 if array.ndim == 1 else array.shape[1]]
        raw = np.ascontiguousarray(array, dtype="<u4" if array.dtype.kind in "iu" else "<f4")
        view = {"buffer": 0, "byteOffset": len(self.data), "byteLength": raw.nbytes}
        self.views.append(view if target is None else view | {"target": target})
        self.data += raw.tobytes()
        made: dict[str, Any] = {
            "bufferView": len(self.views) - 1, "componentType": UNSIGNED if raw.dtype.kind == "u" else FLOAT,
            "count": len(raw), "type": width,
        }  # fmt: skip
        if bounds:
            limits = raw.reshape(len(raw), -1)
            made |= {"min": limits.min(axis=0).tolist(), "max": limits.max(axis=0).tolist()}
        self.accessors.append(made)
        return len(self.accessors) - 1


def glb(
    bodies: Sequence[tuple[str, Sequence[Mesh], np.ndarray]],
    seconds: np.ndarray,
    up: Sequence[float],
    colours: Sequence[str],
    places: np.ndarray,
    extras: Mapping[str, Any],
) -> bytes:
    """The file.

    Parameters
    ----------
    bodies : for each its name, its meshes and its attitudes (n, 4), scalar first
    seconds : (n,) times of playback, from 0
    up : the direction of space that points upwards
    colours : one for each body, such as "#0072B2"
    places : (N, 3) where the bodies stand
    extras : metadata
    """
    buffer = _Buffer()
    clock = buffer.add(seconds, bounds=True)
    document: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "polhode", "extras": dict(extras)}, "scene": 0,
        "scenes": [{"nodes": [0]}], "meshes": [], "materials": [], "animations": [],
        "nodes": [{"name": "space", "rotation": _y_up(up), "children": list(range(1, len(bodies) + 1))}],
    }  # fmt: skip
    channels, samplers = [], []
    for number, (name, parts, attitudes) in enumerate(bodies):
        document["materials"] += _materials(colours[number])
        document["meshes"].append({"name": name, "primitives": _primitives(parts, buffer, 3 * number)})
        q = _continuous(attitudes)[:, [1, 2, 3, 0]]  # glTF has the scalar last
        start = (q[0] / np.linalg.norm(q[0])).tolist()
        place = [float(x) for x in places[number]]
        document["nodes"].append({"name": name, "mesh": number, "rotation": start, "translation": place})
        samplers.append({"input": clock, "output": buffer.add(q), "interpolation": "LINEAR"})
        channels.append({"sampler": number, "target": {"node": number + 1, "path": "rotation"}})
    if len(seconds) > 1:
        document["animations"] = [{"name": "motion", "channels": channels, "samplers": samplers}]
    else:
        del document["animations"]
    document |= {"bufferViews": buffer.views, "accessors": buffer.accessors}
    document["buffers"] = [{"byteLength": len(buffer.data)}]
    return _container(document, bytes(buffer.data))


def _primitives(parts: Sequence[Mesh], buffer: _Buffer, material: int) -> list[dict[str, Any]]:
    """The triangles of a body, by material: light, dark, hole."""
    found = []
    for part in parts:
        attributes = {"POSITION": buffer.add(part.vertices, VERTICES, bounds=True)}
        if part.normals is not None:  # without normals, faces are flat
            attributes["NORMAL"] = buffer.add(part.normals, VERTICES)
        for faces, shade in ((part.light, 0), (part.dark, 1)):
            if len(faces):
                indices = buffer.add(faces.ravel().astype(np.uint32), INDICES)
                chosen = material + (2 if part.hole else shade)
                found.append({"attributes": attributes, "indices": indices, "material": chosen})
    return found


def _materials(colour: str) -> list[dict[str, Any]]:
    """Light, dark and hole; factors of colours are linear, those of the page are sRGB."""
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    looks = {"light": [*linear, 1.0], "dark": [*(0.4 * linear + 0.6), 1.0], "hole": [0.02, 0.02, 0.02, 0.35]}
    made: list[dict[str, Any]] = []
    for name, factor in looks.items():
        surface = {"baseColorFactor": [float(x) for x in factor], "metallicFactor": 0.1, "roughnessFactor": 0.6}
        alpha = {"alphaMode": "BLEND"} if name == "hole" else {}
        made.append({"name": name, "pbrMetallicRoughness": surface, "doubleSided": True} | alpha)
    return made


def _continuous(q: np.ndarray) -> np.ndarray:
    """Unit quaternions with the signs for which neighbours are on the same side, for interpolation."""
    unit = q / np.linalg.norm(q, axis=1, keepdims=True)
    flips = np.where((unit[1:] * unit[:-1]).sum(axis=1) < 0, -1.0, 1.0)
    return np.asarray(unit * np.concatenate([[1.0], np.cumprod(flips)])[:, None])


def _y_up(up: Sequence[float]) -> list[float]:
    """The rotation, scalar last, that takes `up` to y."""
    y = np.asarray(up, dtype=float) / np.linalg.norm(up)
    x = np.cross(y, np.eye(3)[np.abs(y).argmin()])
    x /= np.linalg.norm(x)
    w, *vector = quaternion_of([x.tolist(), y.tolist(), np.cross(x, y).tolist()])
    return [float(c) for c in (*vector, w)]


def _container(document: Mapping[str, Any], binary: bytes) -> bytes:
    """The binary container, section 4 of the specification: header, JSON, data; chunks are padded to four bytes."""
    text = json.dumps(document, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    total = 12 + 8 + len(text) + 8 + len(binary)
    header = struct.pack("<III", MAGIC, 2, total)
    return b"".join([
        header, struct.pack("<II", len(text), JSON_CHUNK), text, struct.pack("<II", len(binary), BINARY_CHUNK), binary
    ])  # fmt: skip
