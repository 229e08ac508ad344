"""Names, routes, acceptance: synchronous, single-threaded, deterministic."""
