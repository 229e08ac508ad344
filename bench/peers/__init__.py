"""Penstock beside its peers: one client loop, one machine, one run."""
