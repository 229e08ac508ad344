"""Tweets to documents, counts and statistics: one query of Spark over the firehose.

Functions over plain values, one file for each step, in the order of the flow:

    tweet        an event as the tweets that it holds, or why it is none
    portion      what a part of a batch comes to: the newest of each id, and sums
    sentiment    scores of a text by AFINN; vader, by VADER
    engagement   what readers do with a tweet, for each follower
    documents    a tweet with its scores, and its user, as JSON
    writing      the store, as a worker has it
    notes        what a task tells the driver beside sums: times, and what was not taken

and what strings them together:

    task         all of the above, as a function of Arrow columns
    totals       what Spark's state has added up, to the store and to the driver
    batch        the driver's part, with letters, samples, statistics and outlet
    application  the query
    run, watch   the query as a process; checkpoint, what it is not begun with

Needs the extra ``penstock[pipeline]``; importing this package loads nothing of it.
"""

from __future__ import annotations
