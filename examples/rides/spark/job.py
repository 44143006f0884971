"""Rides per city in overlapping windows: Kafka -> Spark -> Redis, or -> Kafka where the run has a topic for results.

python job.py RUN.json
"""

import json
import sys
from pathlib import Path

import redis
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

RIDE = "state string, driver string, fare decimal(10,2), trip struct<city: string>, ended_at timestamp"
VALUES = ("trips", "largest", "drivers")

run = json.loads(Path(sys.argv[1]).read_text())
prefix = run["redis_prefix"]
session = (
    SparkSession.builder.appName("rides")
    .config("spark.sql.shuffle.partitions", 4)
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.jars", ",".join(run["jars"]))
    .getOrCreate()
)
records = (
    session.readStream.format("kafka")
    .option("kafka.bootstrap.servers", run["kafka"]["bootstrap"])
    .option("subscribe", run["topic"])
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 20_000)
    .load()
)
rides = records.select(F.from_json(F.col("value").cast("string"), RIDE).alias("ride")).select("ride.*")
totals = (
    rides.withWatermark("ended_at", f"{run['watermark_ms']} milliseconds")
    .where("state = 'finished'")
    .groupBy("trip.city", F.window("ended_at", "30 seconds", "10 seconds"))
    .agg(
        F.count("*").alias("trips"),
        (100 * F.max("fare")).cast("long").alias("largest"),
        F.size(F.collect_set("driver")).alias("drivers"),  # a stream has no count(DISTINCT ...)
    )
    .select("city", F.unix_millis("window.end").alias("end"), *VALUES)
)


def save(batch, _):
    """A hash for each city and window. A batch that comes again writes the same totals again."""
    with redis.Redis.from_url(run["redis"]).pipeline() as pipe:
        for row in batch.collect():
            pipe.hset(f"{prefix}rides:{row['city']}:{row['end']}", mapping={name: row[name] for name in VALUES})
        pipe.execute()


update = totals
if run["results_topic"]:
    update = totals.select(F.concat_ws(":", "city", "end").alias("key"), F.to_json(F.struct("*")).alias("value"))
query = update.writeStream.outputMode("update").option("checkpointLocation", run["checkpoint"])
if run["results_topic"]:
    query = query.format("kafka").option("kafka.bootstrap.servers", run["kafka"]["bootstrap"])
    query = query.option("topic", run["results_topic"])
else:
    query = query.foreachBatch(save)
query.start().awaitTermination()
