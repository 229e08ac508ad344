"""The manners of each protocol: packets to broker calls and back, without I/O."""
