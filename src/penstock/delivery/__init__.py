"""Who still owes what to whom: cursors, windows, retries, handshakes, dead letters."""
