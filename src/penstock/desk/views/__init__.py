"""What the desk tells and is asked for: plain rows and filters.

Clients use them as the desk does, so nothing here knows the broker.
"""
