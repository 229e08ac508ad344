"""Sessions: clients by name, what they filter to hear, and what is in flight to them.

A session outlives its connections. Its filters are topic filters; of the topics they
match only those that have events for it have a subscription, made with the group that
brings the first of them: see routes.py.
"""

from __future__ import annotations

from penstock.sessions.book import Sessions, Willed
from penstock.sessions.session import Session, Share, TopicFilter, Will

__all__ = ["Session", "Sessions", "Share", "Will", "Willed", "TopicFilter"]
