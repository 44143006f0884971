"""Define the nouns of streamgauge as plain frozen values, which all other modules import from here.

The folder uses the standard library only, and nothing in it does input or output. A time is an integer with its unit in
the name; a "relative" time (`_rel_ms`) counts from the load start (harness/load/start_time.py).
"""

from __future__ import annotations

from harness.model.address import HIDDEN, VARIABLE, WITH_SECRETS, KafkaAddress, RedisAddress, SqlAddress, redacted
from harness.model.batches import Batch, BatchLog, EarlierRun, FileSeam, KeptState
from harness.model.disorder import Disorder
from harness.model.engine_report import Backfill, EngineReport, EngineState, LastWords
from harness.model.errors import HarnessError, Stopped, UsageError
from harness.model.fault import CRASH_POINTS, HALF_WRITTEN, CrashPoint, FaultReport, FaultSpec, When
from harness.model.load import Certificate, LoadStatus, LoadWorker
from harness.model.manifest import (
    TABLES,
    ConfigFormat,
    EngineManifest,
    Guarantee,
    Late,
    LateEvidence,
    SinkClaim,
    WindowKey,
)
from harness.model.master import LOCAL_MASTER, MOST_WORKERS, is_remote_master, servers_of_master, workers_of_master
from harness.model.outcome import Exit, Outcome
from harness.model.progress import Checkpoint, Progress
from harness.model.results import Change, Expiring
from harness.model.run_format import READABLE_SCHEMAS, SCHEMA_VERSION
from harness.model.run_spec import DEFAULT_SCENARIO, Client, Cut, RecountedBy, Required, RunSpec
from harness.model.sentinel import Sentinel, SentinelKind
from harness.model.tape import (
    AD_IMPRESSIONS,
    INDEX_BITS,
    INDEX_MASK,
    MARK_SERVER,
    MAX_SERVERS,
    Segment,
    Spell,
    SpellKind,
    TapeSpec,
)
from harness.model.times import EVENT_TIME, Time
from harness.model.verdict import Blame, CheckResult, Verdict, Witness
