"""VTK for ParaView and VisIt: a collection (.pvd) of unstructured grids (.vtu), one for each state.

Each grid has the surfaces of the bodies at their attitudes, or, of a body without shapes, its three axes. Cells have
the number of their body. The field data have time, quaternions (scalar first), momenta and angular velocities.

File formats: W. Schroeder, K. Martin and B. Lorensen, The Visualization Toolkit, 4th ed. (2006), and the VTK
documentation, "VTK XML file formats".
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...physics.shapes import Shape
from ...physics.triangles import surface
from .. import observables
from ..ensemble import Ensemble
from .molecules import centres_of, check_complete
from .place import Place

MOST = 10_000
"""Largest number of states, each of which is a file."""

VERTEX, LINE, TRIANGLE = 1, 3, 5
"""Types of cells of VTK."""

TYPES = {np.dtype(np.float64): "Float64", np.dtype(np.int64): "Int64", np.dtype(np.uint8): "UInt8"}
HEADER = '<?xml version="1.0"?>\n<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
VECTORS = ("momentum", "spatial_momentum", "omega", "spatial_omega")


class Geometry(NamedTuple):
    """Points in the axes of a body, and cells of them."""

    points: np.ndarray
    cells: list[np.ndarray]
    types: list[int]


def write(result: Any, place: Place, *, centres: Any = None) -> None:
    """Write a .pvd file, and a folder of grids beside it.

    centres : (N, 3) places of the pivots; needed for an ensemble
    """
    many = isinstance(result, Ensemble)
    q = result.quaternion if many else result.quaternion[:, None]
    check_complete(result, q)
    if len(q) > MOST:
        raise InputError(
            f"each state becomes a file, at most {MOST}; there are {len(q)}: use sol.at(times), or every=..."
        )
    x = centres_of(centres, q.shape[1])
    looks = [result.known_bodies.body(i).looks for i in range(len(x))] if many else [result.info.shapes]
    bodies = [_geometry(one) for one in looks]
    folder = place.beside(f"{place.path.stem}_states")
    folder.mkdir()
    names = []
    vectors = {name: getattr(result, name) if many else getattr(result, name)[:, None] for name in VECTORS}
    for i, (t, attitudes) in enumerate(zip(result.t.tolist(), q, strict=True)):
        fields = {"TimeValue": np.array([t]), "quaternion": attitudes} | {k: v[i] for k, v in vectors.items()}
        (folder / f"{i:06d}.vtu").write_text(_grid(bodies, x, attitudes, fields), "ascii")
        names.append((t, f"{place.path.stem}_states/{i:06d}.vtu"))
    place.file.write_text("".join(_collection(names)), "utf-8")


def _geometry(shapes: tuple[Shape, ...]) -> Geometry:
    """The surfaces of the shapes of a body that are no holes; three axes if there are none."""
    points, cells, types, first = [], [], [], 0
    for shape in (one for one in shapes if not one.hole):
        vertices, faces = surface(shape)
        alone = not len(faces)
        cells.append(first + (np.arange(len(vertices))[:, None] if alone else faces))
        types.append(VERTEX if alone else TRIANGLE)
        points.append(vertices)
        first += len(vertices)
    if not points:
        return Geometry(np.vstack([np.zeros(3), np.eye(3)]), [np.array([[0, 1], [0, 2], [0, 3]])], [LINE])
    return Geometry(np.concatenate(points), cells, types)


def _grid(bodies: list[Geometry], x: np.ndarray, q: np.ndarray, fields: dict[str, np.ndarray]) -> str:
    """One state as the text of a .vtu file."""
    points, connected, sizes, types, owner, first = [], [], [], [], [], 0
    for i, (body, R) in enumerate(zip(bodies, observables.matrices(q), strict=True)):
        points.append(x[i] + body.points @ R.T)
        for cells, kind in zip(body.cells, body.types, strict=True):
            connected.append((first + cells).ravel())
            sizes.append(np.full(len(cells), cells.shape[1]))
            types.append(np.full(len(cells), kind, dtype=np.uint8))
            owner.append(np.full(len(cells), i))
        first += len(body.points)
    places, numbers = np.concatenate(points), [np.concatenate(one) for one in (connected, sizes, types, owner)]
    parts = [HEADER.format(kind="UnstructuredGrid"), "<UnstructuredGrid>\n<FieldData>\n"]
    parts += [_array(name, values, tuples=True) for name, values in fields.items()]
    parts += [f'</FieldData>\n<Piece NumberOfPoints="{len(places)}" NumberOfCells="{len(numbers[1])}">\n<Points>\n']
    parts += [_array("Points", places), "</Points>\n<Cells>\n", _array("connectivity", numbers[0])]
    parts += [_array("offsets", np.cumsum(numbers[1])), _array("types", numbers[2]), "</Cells>\n<CellData>\n"]
    parts += [_array("body", numbers[3]), "</CellData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n"]
    return "".join(parts)


def _array(name: str, values: np.ndarray, tuples: bool = False) -> str:
    """An array in base64: the number of its bytes, then its numbers."""
    kept = np.ascontiguousarray(values if values.dtype in TYPES else values.astype(np.int64))
    data = kept.astype(kept.dtype.newbyteorder("<")).tobytes()
    text = base64.b64encode(np.array([len(data)], "<u8").tobytes() + data).decode()
    width = f' NumberOfComponents="{kept.shape[-1]}"' if kept.ndim > 1 else ""
    width += f' NumberOfTuples="{len(kept)}"' if tuples else ""
    return f'<DataArray type="{TYPES[kept.dtype]}" Name="{name}"{width} format="binary">{text}</DataArray>\n'


def _collection(names: list[tuple[float, str]]) -> Iterator[str]:
    from xml.sax.saxutils import quoteattr

    yield HEADER.format(kind="Collection") + "<Collection>\n"
    for t, name in names:
        yield f'<DataSet timestep="{t!r}" part="0" file={quoteattr(name)}/>\n'
    yield "</Collection>\n</VTKFile>\n"
