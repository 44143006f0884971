"""Views of ads per campaign and window of ten seconds: Kafka -> Spark -> Iceberg.

python job.py             with the addresses below
python job.py RUN.json    with those of a run of streamgauge
"""

import json
import sys
from pathlib import Path

import redis
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

BROKERS, TOPIC = "localhost:9092", "ad-events"
REDIS, PREFIX = "redis://localhost:6379/0", ""
WAREHOUSE, TABLE = "tables", "lake.shop.ad_counts"
CHECKPOINT = "checkpoint"
builder = SparkSession.builder.appName("ad-counts").config("spark.sql.shuffle.partitions", 4)
builder = builder.config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")

if len(sys.argv) > 1:  # these lines are all that was added
    run = json.loads(Path(sys.argv[1]).read_text())
    BROKERS, TOPIC, REDIS = run["kafka"]["bootstrap"], run["topic"], run["redis"]
    PREFIX, CHECKPOINT, WAREHOUSE = run["redis_prefix"], run["checkpoint"], run["folder"]
    builder = builder.config("spark.jars", ",".join(run["jars"]))

builder = builder.config("spark.sql.catalog.lake.type", "hadoop").config("spark.sql.catalog.lake.warehouse", WAREHOUSE)
session = builder.getOrCreate()
session.sql(
    f"CREATE TABLE IF NOT EXISTS {TABLE} (campaign_id STRING, window_start TIMESTAMP, views BIGINT) USING iceberg"
)
client = redis.Redis.from_url(REDIS, decode_responses=True)
keys = list(client.scan_iter(f"{PREFIX}*", count=1000, _type="string"))
pairs = list(zip([key.removeprefix(PREFIX) for key in keys], client.mget(keys), strict=True))
campaigns = session.createDataFrame(pairs, "ad_id string, campaign_id string").cache()

events = (
    session.readStream.format("kafka")
    .option("kafka.bootstrap.servers", BROKERS)
    .option("subscribe", TOPIC)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", 20_000)
    .load()
    .select(F.from_json(F.col("value").cast("string"), "ad_id string, event_type string, event_time string").alias("e"))
    .select("e.*")
)
views = (
    events.where("event_type = 'view'")
    .join(F.broadcast(campaigns), "ad_id")
    .select("campaign_id", F.timestamp_millis(F.col("event_time").try_cast("long")).alias("time"))
)
window = F.window("time", "10 seconds")


def save(batch, _):
    counts = batch.groupBy("campaign_id", window).agg(F.count("*").alias("views"))
    rows = counts.select("campaign_id", F.col("window.start").alias("window_start"), "views")
    rows.writeTo(TABLE).append()


query = views.writeStream.foreachBatch(save).option("checkpointLocation", CHECKPOINT).start()
query.awaitTermination()
