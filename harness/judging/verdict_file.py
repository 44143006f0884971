"""The verdicts of a run: verdict.json holds the latest, and the history records the digest of each.

Most readers of a verdict do not judge the run again, so `last` checks verdict.json against the history.
"""

from __future__ import annotations

import hashlib

from harness.model import SCHEMA_VERSION, Outcome, Verdict
from harness.rundir.missing_evidence import MissingEvidence, unless_missing
from harness.rundir.store import HISTORY, Store

FILE, KIND = "verdict.json", "verdict"
NAMED = 4  # from this schema on the history names each verdict by its digest


def keep(store: Store, verdict: Verdict, **facts: object) -> None:
    """Store a verdict, unless it equals the latest."""
    if unless_missing(lambda: last(store)) == verdict:
        return
    store.write_json(FILE, verdict)
    try:
        store.tell(KIND, outcome=verdict.outcome.value, digest=_digest(store), **facts)
    except OSError as error:
        raise MissingEvidence(f"{store.path / HISTORY} can't be written; it names each verdict: {error}") from None


def last(store: Store) -> Verdict:
    verdict: Verdict = store.read_as(FILE, Verdict)
    if unlike := contradiction(store):
        raise MissingEvidence(f"{store.path / FILE}: {unlike}. `streamgauge recheck` judges the run again")
    return verdict


def contradiction(store: Store) -> str:
    """Return the contradiction between verdict.json and the history; "" if there is none."""
    if not store.has(FILE):
        return ""
    digests = [line.get("digest") for line in store.history(KIND)]
    if digests[-1:] == [_digest(store)]:
        return ""
    if (store.schema() or SCHEMA_VERSION) < NAMED and not any(digests):
        return ""
    return f"{FILE} was edited: it is not the last verdict that {HISTORY} names"


def failed_first(store: Store) -> bool:
    return store.values(KIND, "outcome", str)[:1] == [Outcome.FAIL.value]


def _digest(store: Store) -> str:
    return hashlib.sha256((store.path / FILE).read_bytes()).hexdigest()
