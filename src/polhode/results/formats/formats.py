"""The table of formats, and the export of results to them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ...physics.validate import file_path
from .place import placed


class Format(NamedTuple):
    """A format of other programs."""

    name: str
    suffix: str
    writer: str
    """Module and function, imported when it is used: ``write(result, place, **options)``."""
    says: str

    @property
    def write(self) -> Callable[..., None]:
        """The function that writes it."""
        module, _, function = self.writer.partition(":")
        found: Callable[..., None] = getattr(importlib.import_module(f"polhode.{module}"), function)
        return found


FORMATS = {
    one.name: one
    for one in (
        Format("csv", ".csv", "results.formats.delimited:write", "text, one row for each state"),
        Format("parquet", ".parquet", "results.formats.arrow:write_parquet", "Parquet, one row for each state"),
        Format("arrow", ".arrow", "results.formats.arrow:write_arrow", "Arrow (Feather), one row for each state"),
        Format("mat", ".mat", "results.formats.matlab:write", "MATLAB"),
        Format("aem", ".aem", "results.formats.aem:write", "attitudes by CCSDS 504.0-B-2, scalar last"),
        Format("ck", ".bc", "results.formats.ck:write", "SPICE C-kernel, with a text kernel of its clock beside it"),
        Format("vtk", ".pvd", "results.formats.vtk:write", "VTK for ParaView, surfaces of the bodies at every state"),
        Format("xyz", ".xyz", "results.formats.molecules:write_xyz", "extended XYZ, atoms of the bodies"),
        Format("gsd", ".gsd", "results.formats.molecules:write_gsd", "GSD of HOOMD-blue, bodies and their atoms"),
    )
}
"""All formats by name; files of the library itself, .zarr and .nc, are written by `save`."""

OWN = (".zarr", ".nc")

MOVING = (".gif", ".mp4", ".glb")
"""Suffixes of films and moving scenes, which `animate` writes."""


def format_of(path: Path, to: str | None = None) -> Format:
    """Return the format with a name, or that of the suffix of a path."""
    if to is not None:
        if not isinstance(to, str) or to not in FORMATS:
            raise InputError(f"the format must be one of {', '.join(FORMATS)}; got {to!r}", "to")
        return FORMATS[to]
    for one in FORMATS.values():
        if path.suffix.lower() == one.suffix:
            return one
    if path.suffix.lower() in MOVING:
        raise InputError(f"films and moving scenes are written by animate: sol.animate({path.name!r})")
    known = ", ".join([*OWN, *(one.suffix for one in FORMATS.values())])
    raise InputError(f"the name of the new file must end in one of {known}; got {path.name!r}")


def export(result: Any, path: str | Path, to: str | None = None, overwrite: bool = False, **options: Any) -> Path:
    """Write a trajectory or an ensemble in a format; the file appears complete or not at all."""
    path = file_path(path, "the new file must be a path")
    if to is None and path.suffix in OWN and not options:
        return Path(result.save(path, overwrite))
    if to is None and path.suffix in OWN and "euler" in options:
        raise InputError(
            f"files of this library, {' and '.join(OWN)}, hold the quaternion only, from which euler_deg computes the "
            f"angles; for files with angles choose .csv, .parquet, .arrow or .mat, or use to_xarray(euler=...); got "
            f"{path.name!r}",
            "euler",
        )
    chosen = format_of(path, to)
    write = chosen.write
    _check_options(chosen.name, write, options)
    with placed(path, overwrite) as place:
        write(result, place, **options)
    return path


def _check_options(name: str, write: Callable[..., None], options: dict[str, Any]) -> None:
    """Refuse options that a format does not have, and miss those that it needs."""
    known = {key: one for key, one in inspect.signature(write).parameters.items() if one.kind is one.KEYWORD_ONLY}
    for key in options:
        if key not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise InputError(f"the format {name} has no option {key!r}; {has}", key)
    for key, one in known.items():
        if one.default is one.empty and key not in options:
            raise InputError(f"the format {name} needs the option {key}", key)
