"""The text form (KVN, keyword = value) of the navigation messages of CCSDS: segments of metadata and lines of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .. import _files
from ..errors import InputError
from .epochs import Epoch, epoch_of
from .validate import file_path

Row = tuple[Epoch, list[float]]


class Reader:
    """Reads a message line by line; a subclass says what a segment is."""

    kind: ClassVar[str]
    """Name of the message, such as OEM."""
    blocks: ClassVar[dict[str, str]]
    """Marks on lines of their own, and the block that begins there; lines of other blocks than data are skipped."""
    fewest: ClassVar[int]
    """Smallest number of lines of data of a segment."""

    def __init__(self, path: Any) -> None:
        article = "an" if self.kind[0] in "AEO" else "a"
        self.file: Path = file_path(path, f"this must be a file in the {self.kind} format")
        self.header = f"CCSDS_{self.kind}_VERS"
        self.begins = f"{article} {self.kind} begins with {self.header} = ..."
        self.number, self.version = 0, ""
        self.segments: list[Any] = []
        self.meta: dict[str, str] | None = None
        self.rows: list[Row] = []

    def segment(self, meta: dict[str, str], rows: list[Row]) -> Any:
        """Make a segment."""
        raise NotImplementedError

    def check_numbers(self, numbers: list[float], line: str) -> None:
        """Refuse a line that does not have the right numbers."""
        raise NotImplementedError

    def outside(self, line: str) -> None:
        """Handle a line between the blocks."""

    def read(self) -> list[Any]:
        """Read the segments of the file; errors name the line."""
        block = "header"
        for number, raw in enumerate(self._text().splitlines(), 1):
            line, self.number = raw.strip(), number
            if not line or line.startswith("COMMENT"):
                continue
            if not self.version:
                if not line.startswith(self.header):
                    raise self.fault(self.begins, line)
                self.version = line.partition("=")[2].strip() or "?"
            if line == "META_START":
                self._check_end(block)
                self._finish()
                block, self.meta = "meta", {}
            elif line in self.blocks:
                block = self.blocks[line]
            elif block == "meta":
                self._keyword(line)
            elif block == "data":
                self._row(line)
            elif block == "between":
                self.outside(line)
        self._check_end(block)
        self._finish()
        if not self.segments:
            raise InputError(f"{self.file.name} has no data; expected META_START ... META_STOP, and lines of data")
        return self.segments

    def _text(self) -> str:
        try:
            text = _files.text_of(self.file, "utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"{self.file.name} cannot be read: {problem}") from None
        if text.lstrip().startswith("<"):
            raise InputError(f"{self.file.name} is an {self.kind} in XML; export it as text (KVN)")
        return text

    def _check_end(self, block: str) -> None:
        """Refuse a file that ends, or goes on, within a block that has a mark at its end."""
        if block == "data" and "DATA_STOP" in self.blocks:
            raise self.fault("the lines of data must end with DATA_STOP", "the end of the segment")

    def _keyword(self, line: str) -> None:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or self.meta is None:
            raise self.fault("a line of metadata is KEYWORD = value", line)
        self.meta[name] = value

    def _row(self, line: str) -> None:
        epoch, *words = line.split()
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        self.check_numbers(numbers if np.isfinite(numbers).all() else [], line)
        self.rows.append((epoch_of(epoch, f"line {self.number} of {self.file.name}: the epoch"), numbers))

    def _finish(self) -> None:
        """End the segment, if there is one."""
        if self.meta is not None:
            if len(self.rows) < self.fewest:
                lines = "lines" if self.fewest > 1 else "line"
                raise self.fault(f"a segment needs at least {self.fewest} {lines} of data", f"{len(self.rows)}")
            self.segments.append(self.segment(self.meta, self.rows))
        self.meta, self.rows = None, []

    def fault(self, expected: str, line: str) -> InputError:
        """An error at the current line."""
        return InputError(f"line {self.number} of {self.file.name}: {expected}; got {line[:60]!r}")
