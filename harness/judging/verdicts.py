"""The verdicts of a run: verdict.json holds the last one, and the history names each by its digest.

Most readers of a verdict judge nothing: so verdict.json alone is not believed.
"""

from __future__ import annotations

import hashlib

from harness.model import SCHEMA_VERSION, Outcome, Verdict
from harness.rundir.store import HISTORY, MissingEvidence, Store, unless_missing

FILE, KIND = "verdict.json", "verdict"
NAMED = 4  # from this schema on the history names each verdict by its digest


def keep(store: Store, verdict: Verdict, **facts: object) -> None:
    """Once: the same verdict again is not written."""
    if unless_missing(lambda: last(store)) == verdict:
        return
    store.write_json(FILE, verdict)
    try:
        store.tell(KIND, outcome=verdict.outcome.value, digest=_digest(store), **facts)
    except OSError as error:
        raise MissingEvidence(f"{store.path / HISTORY} can't be written, which names each verdict: {error}") from None


def last(store: Store) -> Verdict:
    verdict: Verdict = store.read_as(FILE, Verdict)
    if unlike := contradiction(store):
        raise MissingEvidence(f"{store.path / FILE}: {unlike}. `streamgauge recheck` judges the run again")
    return verdict


def contradiction(store: Store) -> str:
    """Between verdict.json and the history; "" where there is none."""
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
