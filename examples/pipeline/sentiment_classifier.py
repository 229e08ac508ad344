"""A classifier, trained on a topic's history, scores tweets as they come."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import HashingTF, Tokenizer
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.functions import col, struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamReader

import penstock
from penstock.pipeline.parse import firehose, tweets
from penstock.pipeline.sentiment import vader
from penstock.spark import session
from penstock.tweets.generator import Generator

Reader = DataFrameReader | DataStreamReader

HISTORY, LIVE = 1500, 500


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


def read(reader: Reader, data: str, start: int) -> DataFrame:
    """Tweets from an offset on, without those inside of others."""
    events = reader.format("penstock").options(
        startingOffsets=f'{{"firehose": {{"0": {start}}}}}',
        subscribe="firehose",
        valueSchema=firehose(),
    )
    return tweets(events.load(data)).where("NOT is_retweet")


def labelled(found: DataFrame) -> DataFrame:
    """1.0 for what VADER takes to be kind, 0.0 for the rest."""
    return vader(found).withColumn("label", (col("vader") > 0.05).cast("double"))


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
