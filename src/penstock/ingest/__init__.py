"""Connectors: what other systems send, in topics, each event once."""
