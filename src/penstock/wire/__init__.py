"""Bytes <-> packets, one folder per protocol. No sockets, files, clocks, broker."""
