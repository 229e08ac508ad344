"""A classifier, trained on a topic's history, scores tweets as they come."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import HashingTF, Tokenizer
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.functions import col, struct, to_json
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.streaming.readwriter import DataStreamReader as StreamReader

import penstock
from penstock.pipeline.vader import compound
from penstock.spark import session
from penstock.tweets.generator import Generator

HISTORY, LIVE = 1500, 500
# What is wanted of a tweet; the source decodes nothing else.
SCHEMA = "message STRUCT<tweet: STRUCT<id_str: STRING, text: STRING>>"


def main(spark: SparkSession) -> None:
    generator = Generator(seed=7, stream=1)
    with tempfile.TemporaryDirectory() as place:
        data, checkpoint = str(Path(place, "data")), str(Path(place, "checkpoint"))
        with penstock.open(data) as broker:
            broker.publish_many("firehose", generator.batch(1, HISTORY))
            model = trained(labelled(read(spark.read, data, 0)))
            broker.publish_many("firehose", generator.batch(HISTORY + 1, LIVE))
            live = labelled(read(spark.readStream, data, HISTORY))
            score(model, live, data, checkpoint)
        found = spark.read.format("penstock").load(
            data, subscribe="moods", valueSchema="label DOUBLE, prediction DOUBLE"
        )
        right = found.where(col("label") == col("prediction")).count()
        print(f"{found.count()} tweets scored, {right * 100 // found.count()} % right")


def read(reader: DataFrameReader | StreamReader, data: str, start: int) -> DataFrame:
    """Tweets from an offset on."""
    place = f'{{"firehose": {{"0": {start}}}}}'
    events = reader.format("penstock").options(subscribe="firehose", valueSchema=SCHEMA)
    tweets = events.option("startingOffsets", place).load(data)
    return tweets.select("message.tweet.*").where("text IS NOT NULL")


def labelled(found: DataFrame) -> DataFrame:
    """1.0 for what VADER takes to be kind, 0.0 for the rest."""
    vader = arrow_udf(scores, "double")  # type: ignore[call-overload]  # by its hints
    return found.withColumn("label", (vader("text") > 0.05).cast("double"))


def scores(texts: pa.Array) -> pa.Array:
    return pa.array([compound(text) for text in texts.to_pylist()], pa.float64())


def trained(found: DataFrame) -> PipelineModel:
    words = Tokenizer(inputCol="text", outputCol="tokens")
    counts = HashingTF(inputCol="tokens", outputCol="features", numFeatures=1 << 12)
    fitter = LogisticRegression(maxIter=10, regParam=0.01)
    return Pipeline(stages=[words, counts, fitter]).fit(found)


def score(model: PipelineModel, live: DataFrame, data: str, checkpoint: str) -> None:
    moods = model.transform(live).select(
        col("id_str").alias("key"),
        to_json(struct("text", "label", "prediction")).alias("value"),
    )
    writer = moods.writeStream.format("penstock").trigger(availableNow=True)
    writer = writer.options(path=data, topic="moods", checkpointLocation=checkpoint)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(session())
