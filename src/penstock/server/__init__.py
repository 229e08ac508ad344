"""The event loop: listeners, connections, flow control, group commit, users."""
