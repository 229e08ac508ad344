"""Spark jobs that make tweets into documents, counts and statistics.

One file for each job, a function from DataFrame to DataFrame, so that each can be
used, and tested, on any table of the right columns:

    parse        payloads of the firehose to tweets, retweeted ones as their own
    sentiment    scores of a text: AFINN and VADER
    engagement   what readers do with a tweet, for each follower
    documents    a tweet with its scores, as JSON
    users        who wrote it, as JSON
    changes      of many documents the newest for each key
    running      engagement of each user, over all of his tweets
    hashtags     how often each tag was used
    statistics   how long it all took, in windows of five seconds

``application`` makes them queries of one Spark application. Needs the extra
``penstock[pipeline]``; importing this package loads nothing of it.
"""

from __future__ import annotations
