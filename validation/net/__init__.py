"""The same motion computed in every way that can: `cases` says what moves, `ways` says what must agree with what."""
