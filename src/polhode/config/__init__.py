"""Problems and sweeps as TOML files."""

from .._extras import needed

needed("pydantic")
