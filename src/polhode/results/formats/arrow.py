"""Parquet, and the file format of Arrow (Feather), through pyarrow (extra ``polhode[arrow]``).

The metadata of the schema has the attributes of the run under "polhode", as JSON; that of each column its unit and
meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._extras import needed
from . import table
from .place import Place


def write_parquet(result: Any, place: Place, *, euler: str | None = None) -> None:
    """Write a Parquet file; with `euler`, a sequence such as "ZYX", with columns of Euler angles in degrees."""
    parquet = needed("pyarrow.parquet")
    _write(result, euler, lambda schema: parquet.ParquetWriter(str(place.file), schema))


def write_arrow(result: Any, place: Place, *, euler: str | None = None) -> None:
    """Write an Arrow IPC file, which is Feather, version 2; `euler` as in Parquet files."""
    ipc = needed("pyarrow.ipc")
    _write(result, euler, lambda schema: ipc.new_file(str(place.file), schema))


def _write(result: Any, euler: str | None, opened: Callable[[Any], Any]) -> None:
    pyarrow = needed("pyarrow")
    blocks = table.blocks_of(result, euler)
    first = next(blocks)
    types = {name: pyarrow.int64() if name == table.BODY else pyarrow.float64() for name in first}
    fields = [pyarrow.field(name, kind, metadata=table.meaning(name)) for name, kind in types.items()]
    schema = pyarrow.schema(fields, metadata={"polhode": table.about_text(result)})
    with opened(schema) as writer:
        for block in (first, *blocks):
            writer.write_table(pyarrow.Table.from_pydict(dict(block), schema=schema))
