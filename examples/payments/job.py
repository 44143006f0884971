"""Payments and cents per merchant and minute: Kafka -> Spark -> Redis.

python job.py             with the addresses below
python job.py RUN.json    with those of a run of streamgauge
"""

import json
import sys
from pathlib import Path

import redis
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

BROKERS, TOPIC = "localhost:9092", "payments"
REDIS, PREFIX = "redis://localhost:6379/0", ""
CHECKPOINT = "checkpoint"
builder = (
    SparkSession.builder.appName("payments")
    .config("spark.sql.shuffle.partitions", 4)
    .config("spark.sql.session.timeZone", "UTC")
)

if len(sys.argv) > 1:  # these five lines are all that was added
    run = json.loads(Path(sys.argv[1]).read_text())
    BROKERS, TOPIC, REDIS = run["kafka"]["bootstrap"], run["topic"], run["redis"]
    PREFIX, CHECKPOINT = run["redis_prefix"], run["checkpoint"]
    builder = builder.config("spark.jars", ",".join(run["jars"]))

session = builder.getOrCreate()
client = redis.Redis.from_url(REDIS, decode_responses=True)
records = (
    session.readStream.format("kafka")
    .option("kafka.bootstrap.servers", BROKERS)
    .option("subscribe", TOPIC)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 20_000)
    .load()
)
PAYMENT = "merchant string, amount decimal(10,2), paid_at timestamp"
payments = (
    records.select(F.from_json(F.col("value").cast("string"), PAYMENT).alias("payment"))
    .select("payment.*")
    .where("merchant IS NOT NULL AND amount > 0")  # drop what is no payment
)
minutes = (
    payments.withWatermark("paid_at", "10 seconds")
    .groupBy("merchant", F.window("paid_at", "1 minute"))
    .agg(F.count("*").alias("payments"), (100 * F.sum("amount")).cast("long").alias("cents"))
)


def save(batch, _):
    with client.pipeline() as pipe:
        for row in batch.withColumn("start", F.unix_millis("window.start")).collect():
            pipe.hset(f"{PREFIX}minute:payments:{row['merchant']}", row["start"], row["payments"])
            pipe.hset(f"{PREFIX}minute:cents:{row['merchant']}", row["start"], row["cents"])
        pipe.execute()


query = minutes.writeStream.outputMode("update").foreachBatch(save).option("checkpointLocation", CHECKPOINT).start()
query.awaitTermination()
