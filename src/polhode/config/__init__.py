"""Problems and sweeps as TOML files."""
