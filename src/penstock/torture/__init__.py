"""Accidents on purpose: everything that can go wrong, and every promise looked at.

``penstock torture`` is the command; ``story.py`` is the whole of a run.
"""
