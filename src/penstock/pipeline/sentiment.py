"""Sentiment of a text: the mean of its words in AFINN, and the compound of VADER.

AFINN is computed by Spark's own functions. Its list has 2 476 entries, of which 14 have
spaces and so are never found; Spark 4.3 looks into a constant map of that size by hash,
and to look could not be measured beside splitting the text.

VADER is a program in Python, which looks at a text for 70 to 100 microseconds: ten
thousand texts a second for each core, and the most expensive step of the pipeline. It
runs on Arrow arrays in Spark's Python workers; each keeps the scores of the texts that
it has seen last, because what is retweeted comes again and again.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import (
    array_remove,
    call_function,
    coalesce,
    col,
    expr,
    from_json,
    lit,
    size,
    split,
    translate,
    when,
)
from pyspark.sql.pandas.functions import arrow_udf

from penstock.tweets.words import emotion_values

# What is deleted from a text before it is split.
SIGNS = ".,?/:;!|"
# Texts whose VADER score a worker remembers.
REMEMBERED = 20_000


def sentiment(tweets: DataFrame) -> DataFrame:
    """The tweets with ``words``, the value of each (0 if unknown) and their mean.

    Words are what stands between spaces, as it is written: ``Good`` is not ``good``.
    The mean ``sentiment`` of no words is null.
    """
    scores = from_json(lit(json.dumps(emotion_values())), "map<string,int>")
    text = coalesce(col("text"), lit(""))
    words = array_remove(split(translate(text, SIGNS, ""), " "), "")
    # In SQL, not as lambdas of Python: see parse.
    value = expr("word -> coalesce(element_at(afinn, word), 0)")
    add = expr("(sum, one) -> sum + one")
    total = call_function("aggregate", col("word_values"), lit(0), add)
    return (
        tweets.withColumn("words", words)
        .withColumn("afinn", scores)
        .withColumn("word_values", call_function("transform", col("words"), value))
        .drop("afinn")
        .withColumn(
            "sentiment", when(size("words") > 0, total / size("words")).cast("double")
        )
    )


def vader(tweets: DataFrame) -> DataFrame:
    """The tweets with a column ``vader``: from -1 to 1, null where there is no text."""
    # Its kind is read from the hints of the function, which Spark's types do not know.
    scores = arrow_udf(compounds, "double")  # type: ignore[call-overload]
    return tweets.withColumn("vader", scores("text"))


def compounds(texts: pa.Array) -> pa.Array:
    """VADER's compound of each text."""
    return pa.array(
        [None if text is None else compound(text) for text in texts.to_pylist()],
        pa.float64(),
    )


@lru_cache(REMEMBERED)
def compound(text: str) -> float:
    """VADER's compound of one text."""
    return float(_analyzer().polarity_scores(text)["compound"])


@lru_cache(1)
def _analyzer() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
