"""Run the Python blocks of a page and take its pictures: ``python -m tools.page_pictures monte_carlo``.

The blocks run in an empty folder. What each prints and how long it takes is shown, and every picture that it saves and
the page shows replaces the one in docs/.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tools.documents import ROOT, blocks

SHOWN = re.compile(r"!\[[^\]]*\]\((\w+\.png)\)")


def taken(name: str) -> list[str]:
    """Run a page of docs/ and copy its pictures; return their names."""
    import matplotlib

    matplotlib.use("Agg")
    page = ROOT / "docs" / f"{name}.md"
    space = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, (_, block) in enumerate(blocks(page), 1):
            begin = time.perf_counter()
            exec(compile(block, str(page), "exec"), space)
            print(f"block {number}: {time.perf_counter() - begin:.1f} s")
        found = [picture for picture in SHOWN.findall(page.read_text("utf-8")) if Path(picture).exists()]
        for picture in found:
            shutil.copyfile(picture, ROOT / "docs" / picture)
    return found


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(argument, *taken(argument), f"on {os.cpu_count()} cores")
