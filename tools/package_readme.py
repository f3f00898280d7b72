"""README as the description of the package: relative links become addresses of the tagged version.

A package index shows README without the repository around it. hatchling calls `ReadmeHook` for every build
(``[tool.hatch.metadata.hooks.custom]`` in pyproject.toml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "github.com/polhode/polhode"
PAGES = f"https://{REPOSITORY}/blob"
FILES = f"https://raw.{REPOSITORY.replace('github', 'githubusercontent')}"

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\n)*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
"""A relative link of Markdown, or a picture."""


def absolute(text: str, version: str) -> str:
    """The text with the addresses of pages and pictures at the tag of a version."""
    return LINK.sub(lambda link: f"{link[1]}[{link[2]}]({FILES if link[1] else PAGES}/v{version}/{link[3]})", text)


class ReadmeHook(MetadataHookInterface):
    """Set the description of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README and the version."""
        root = Path(self.root)
        found = re.search(r'__version__ = "(.+?)"', (root / "src/polhode/_version.py").read_text("utf-8"))
        assert found, "src/polhode/_version.py has no __version__"
        text = absolute((root / "README.md").read_text("utf-8"), found[1])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
