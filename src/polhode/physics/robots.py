"""Mass, centre of mass and inertia from descriptions of robots: URDF, SDF and MJCF files.

The tensor is about the centre of mass, and is turned into the axes of the link (of the body, in MJCF): these are the
axes of the result. Only numbers are read: meshes, included files and macros are not, and nothing in a file is executed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np

from .. import _files
from ..errors import InputError
from .validate import file_path, quaternion_of, unit_quaternion

ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""The entries of a symmetric tensor in URDF and SDF; off the diagonal they are those of the matrix."""


@dataclasses.dataclass(frozen=True)
class Inertial:
    """What a file says of a link: mass, centre of mass, tensor in its own axes, and the rotation of these axes."""

    mass: float
    centre: np.ndarray
    tensor: np.ndarray
    rotation: np.ndarray

    @property
    def turned(self) -> np.ndarray:
        """The tensor in the axes of the link."""
        return np.asarray(self.rotation @ self.tensor @ self.rotation.T)


class _File:
    """The elements of an XML file, with errors that name the file and the link."""

    def __init__(self, path: Any, kind: str, root: str) -> None:
        self.file, self.kind = file_path(path, f"this must be a file in the {kind} format"), kind
        try:
            text = _files.text_of(self.file, "utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"{self.file.name} cannot be read: {problem}") from None
        if "<!DOCTYPE" in text or "<!ENTITY" in text:  # entities may expand without limit
            raise InputError(f"{self.file.name} defines entities; write it without <!DOCTYPE ...>")
        try:
            self.root = ElementTree.fromstring(text)
        except ElementTree.ParseError as problem:
            raise InputError(f"{self.file.name} is not an XML file: {problem}") from None
        if self.root.tag != root:
            raise InputError(f"{self.file.name} is not {kind}: it begins with <{self.root.tag}>, not with <{root}>")
        if any("xacro" in str(one.tag) for one in self.root.iter()):
            raise InputError(f"{self.file.name} has macros; expand it first: xacro model.xacro > model.urdf")

    def chosen(self, found: list[tuple[str, Any]], name: str | None, what: str) -> tuple[str, Any]:
        """Return the element with a name, or the only one."""
        if name is not None and not isinstance(name, str):
            raise InputError(f"{what} must be a name; got {name!r}", what)
        fits = [one for one in found if name is None or one[0] == name or one[0].rpartition("::")[2] == name]
        if len(fits) == 1:
            return fits[0]
        names = ", ".join(one for one, _ in found) or "none"
        if name is None:
            raise InputError(f"give {what}, one of those of {self.file.name} that have an inertia: {names}", what)
        wrong = "no" if not fits else "more than one"
        raise InputError(f"{self.file.name} has {wrong} {what} {name!r} with an inertia; it has {names}", what)

    def numbers(self, text: str | None, count: int, where: str) -> np.ndarray:
        """Return numbers of a text."""
        try:
            found = np.array([float(word) for word in (text or "").split()])
        except ValueError:
            found = np.empty(0)
        if len(found) != count or not np.isfinite(found).all():
            what = "a number" if count == 1 else f"{count} numbers"
            raise InputError(f"{where} of {self.file.name} must be {what}; got {text!r}")
        return found

    def rotation(self, quaternion: np.ndarray, where: str) -> Any:
        """Return the scipy Rotation of a quaternion, scalar first, of any length but zero."""
        from scipy.spatial.transform import Rotation

        length = np.linalg.norm(quaternion)
        if not length > 0:
            raise InputError(f"the quaternion of {where} of {self.file.name} must not be zero")
        return Rotation.from_quat(unit_quaternion(tuple((quaternion / length).tolist())), scalar_first=True)


TRUE = ("true", "1")
MOST = 100
"""Deepest nesting of models."""


def _symmetric(entries: dict[str, float]) -> np.ndarray:
    return np.array([[entries["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])


def urdf(path: Any, link: str | None) -> Inertial:
    """Read <inertial> of a link of a URDF file: `rpy` are angles about the fixed axes x, y, z."""
    from scipy.spatial.transform import Rotation

    file = _File(path, "URDF", "robot")
    found = [(one.get("name", ""), one.find("inertial")) for one in file.root.iter("link")]
    name, inertial = file.chosen([(key, one) for key, one in found if one is not None], link, "link")
    where = f"link {name!r}"
    origin, mass, inertia = (inertial.find(tag) for tag in ("origin", "mass", "inertia"))
    if mass is None or inertia is None:
        raise InputError(f"{where} of {file.file.name} needs <mass> and <inertia> within <inertial>")
    at = {} if origin is None else origin.attrib
    entries = {key: float(file.numbers(inertia.get(key), 1, f"{key} of {where}")[0]) for key in ENTRIES}
    turned = Rotation.from_euler("xyz", file.numbers(at.get("rpy", "0 0 0"), 3, f"rpy of {where}"))
    return Inertial(
        float(file.numbers(mass.get("value"), 1, f"the mass of {where}")[0]),
        file.numbers(at.get("xyz", "0 0 0"), 3, f"xyz of {where}"), _symmetric(entries), turned.as_matrix(),
    )  # fmt: skip


def sdf(path: Any, link: str | None) -> Inertial:
    """Read <inertial> of a link of an SDF file; links of several models are named model::link."""
    file = _File(path, "SDF", "sdf")
    name, inertial = file.chosen(list(_links(file.root, "")), link, "link")
    where = f"link {name!r}"
    mass, inertia, pose = (inertial.find(tag) for tag in ("mass", "inertia", "pose"))
    if inertial.get("auto") in TRUE or mass is None or inertia is None:
        raise InputError(f"{where} of {file.file.name} needs <mass> and <inertia> within <inertial>")
    centre, turned = _pose(file, pose, where)
    texts = {key: inertia.findtext(key, "0" if key[1] != key[2] else None) for key in ENTRIES}
    entries = {key: float(file.numbers(text, 1, f"{key} of {where}")[0]) for key, text in texts.items()}
    return Inertial(
        float(file.numbers(mass.text, 1, f"the mass of {where}")[0]), centre, _symmetric(entries), turned.as_matrix()
    )


def _links(element: Any, within: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Links with an inertia, by names such as model::link."""
    if depth > MOST:
        raise InputError(f"models are nested more than {MOST} times; save the one with the link as a file of its own")
    for one in element:
        name = within + one.get("name", "")
        if one.tag == "link" and one.find("inertial") is not None:
            yield name, one.find("inertial")
        elif one.tag in ("world", "model"):
            yield from _links(one, within if one.tag == "world" else f"{name}::", depth + 1)


def _pose(file: _File, pose: Any, where: str) -> tuple[np.ndarray, Any]:
    """Position and rotation of an SDF pose: six numbers, or seven with a quaternion whose scalar is last."""
    from scipy.spatial.transform import Rotation

    if pose is None or not (pose.text or "").strip():
        return np.zeros(3), Rotation.identity()
    if pose.get("relative_to"):
        raise InputError(
            f"the pose of {where} of {file.file.name} is relative to another frame, which is not followed; write it "
            "relative to its parent"
        )
    if pose.get("rotation_format", "euler_rpy") == "quat_xyzw":
        numbers = file.numbers(pose.text, 7, f"the pose of {where}")
        return numbers[:3], file.rotation(numbers[[6, 3, 4, 5]], where)
    numbers = file.numbers(pose.text, 6, f"the pose of {where}")
    return numbers[:3], Rotation.from_euler("xyz", numbers[3:], degrees=pose.get("degrees") in TRUE)


REWRITES = ("settotalmass", "boundmass", "boundinertia", "balanceinertia", "inertiafromgeom")
"""Attributes of <compiler> by which MuJoCo changes the inertia of a file."""

UNCHANGED = ("", "false", "auto", "0", "-1")


def mjcf(path: Any, body: str | None) -> Inertial:
    """Read <inertial> of a body of an MJCF file."""
    file = _File(path, "MJCF", "mujoco")
    compiler = {key: value for one in file.root.iter("compiler") for key, value in one.attrib.items()}
    for key in REWRITES:
        if compiler.get(key, "").strip() not in UNCHANGED:
            raise InputError(f"{file.file.name} lets MuJoCo change the inertia ({key}); save the compiled model first")
    found = [(one.get("name", ""), one.find("inertial")) for one in file.root.iter("body")]
    name, inertial = file.chosen([(key, one) for key, one in found if one is not None], body, "body")
    where = f"body {name!r}"
    mass = float(file.numbers(inertial.get("mass"), 1, f"the mass of {where}")[0])
    centre = file.numbers(inertial.get("pos"), 3, f"pos of {where}")
    if "fullinertia" in inertial.attrib:
        xx, yy, zz, xy, xz, yz = file.numbers(inertial.get("fullinertia"), 6, f"fullinertia of {where}")
        return Inertial(mass, centre, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), np.eye(3))
    moments = file.numbers(inertial.get("diaginertia"), 3, f"diaginertia, or fullinertia, of {where}")
    return Inertial(mass, centre, np.diag(moments), _orientation(file, inertial, compiler, where).as_matrix())


def _orientation(file: _File, inertial: Any, compiler: dict[str, str], where: str) -> Any:
    """Rotation of the axes of an MJCF inertia; angles are in degrees unless the compiler says radian."""
    from scipy.spatial.transform import Rotation

    degrees = compiler.get("angle", "degree") == "degree"

    def by_euler(numbers: np.ndarray) -> Any:
        sequence = compiler.get("eulerseq", "xyz").swapcase()  # small letters are moving axes, the reverse of SciPy
        return Rotation.from_euler(sequence, numbers, degrees=degrees)

    def by_axis(numbers: np.ndarray) -> Any:
        angle = np.radians(numbers[3]) if degrees else numbers[3]
        return file.rotation(np.array([np.cos(angle / 2), *_unit(numbers[:3]) * np.sin(angle / 2)]), where)

    def by_axes(numbers: np.ndarray) -> Any:
        x = _unit(numbers[:3])
        y = _unit(numbers[3:] - (numbers[3:] @ x) * x)
        return file.rotation(np.array(quaternion_of(np.stack([x, y, np.cross(x, y)], 1).tolist())), where)

    ways: dict[str, tuple[int, Callable[[np.ndarray], Any]]] = {
        "quat": (4, lambda numbers: file.rotation(numbers, where)),
        "axisangle": (4, by_axis), "euler": (3, by_euler), "xyaxes": (6, by_axes),
    }  # fmt: skip
    for key, (count, turned) in ways.items():
        if key in inertial.attrib:
            return turned(file.numbers(inertial.get(key), count, f"{key} of {where}"))
    if "zaxis" in inertial.attrib:
        raise InputError(f"{where} of {file.file.name} is oriented by zaxis, which is not read; write quat instead")
    return Rotation.identity()


def _unit(vector: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vector)
    if not length > 0:
        raise InputError(f"an axis of the inertia must not be zero; got {vector.tolist()}")
    return np.asarray(vector / length)
