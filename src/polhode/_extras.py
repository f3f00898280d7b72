"""Packages that only some uses need, and the extra of polhode that installs each."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import InputError

FILES, PICTURES, APP = (
    ("files", "files of results, tables and datasets need"),
    ("plot", "pictures and films need"),
    ("app", "the command line and problem files need"),
)

PACKAGES = {
    "distributed": ("cluster", "a cluster needs"),
    "gsd": ("gsd", "GSD files need"),
    "h5netcdf": FILES,
    "h5py": FILES,
    "imageio_ffmpeg": ("film", "films as MP4 (not those as GIF) need"),
    "jax": ("jax", "ph.jax needs"),
    "jaxlib": ("jax", "ph.jax needs"),
    "jplephem": ("spk", "SPK kernels need"),
    "matplotlib": PICTURES,
    "pandas": FILES,
    "PIL": PICTURES,
    "pyarrow": ("arrow", "Parquet and Arrow files need"),
    "pydantic": APP,
    "rich": APP,
    "spiceypy": ("ck", "C-kernels need"),
    "trimesh": ("mesh", "bodies from meshes need"),
    "typer": APP,
    "xarray": FILES,
    "zarr": FILES,
}
"""By name of the package, the extra that installs it and who needs it."""

INSTALLED_AS = {"PIL": "pillow", "distributed": "dask", "imageio_ffmpeg": "imageio-ffmpeg"}


def needed(module: str) -> Any:
    """Import a module of an optional package, or one of ours that needs such a package, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        named = (str(name).partition(".")[0] for name in (fault.name, module))
        package = next((name for name in named if name in PACKAGES), None)
        if package is None:
            raise
        absent = isinstance(fault, ModuleNotFoundError) and str(fault.name).partition(".")[0] == package
        why = "which is not installed" if absent else f"which cannot be imported ({fault})"
    extra, who = PACKAGES[package]
    raise InputError(f"{who} {INSTALLED_AS.get(package, package)}, {why}: pip install 'polhode[{extra}]'")
