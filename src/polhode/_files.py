"""Files that the library reads by itself: ordinary ones only, of no more bytes than expected.

Opening a pipe waits for a writer, perhaps for ever, and a device or a file that grew can fill the memory.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from pathlib import Path
from typing import BinaryIO

TEXT_BYTES = 1 << 30
"""Longest text that a user gives as a file."""


def ordinary(path: str | Path, most: float = math.inf, flags: int = 0) -> BinaryIO:
    """Open an ordinary file of at most `most` bytes for reading, without waiting; anything else is an OSError."""

    def opened(name: str, mode: int) -> int:
        handle = os.open(name, mode | getattr(os, "O_NONBLOCK", 0) | flags)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "it is no ordinary file", name)
            if found.st_size > most:
                raise OSError(errno.EFBIG, f"it has {found.st_size} bytes, more than such a file has", name)
        except BaseException:
            os.close(handle)
            raise
        return handle

    return open(path, "rb", opener=opened)  # readers may ask such a file for its name


def text_of(path: str | Path, encoding: str) -> str:
    """Return the text of a file named by the user, which may be a pipe; an OSError if it is longer than any such text.

    As in text files, lines may end in any way.
    """
    with open(path, "rb") as file:
        data = file.read(TEXT_BYTES + 1)
    if len(data) > TEXT_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {TEXT_BYTES >> 30} GiB, too much for a text file", str(path))
    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
