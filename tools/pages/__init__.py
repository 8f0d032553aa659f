"""`make pages`: writes the sections of `docs/` that come from the rules and their tables."""
