"""Topics, publishing, subscriptions: synchronous, single-threaded, deterministic."""
