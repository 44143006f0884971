"""Detects a mistake in the manifest that the job's first answers show, before it looks like a wrong count.

The harness refuses such a run before its load, with the line that the manifest needs. A wrong refusal is worse than a
late one, so each rule waits until the job has shown its behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import EngineManifest, Sentinel, UsageError
from harness.runner.result_polling import ExpectedSentinels, ResultPoller
from harness.runner.sentinels import Marking
from harness.util.texts import many

# Later events close the window of the opening ones after this share of the time in which a job has to answer. They
# could make those late for a job that has not read them yet: without progress reports we wait longer.
PROBE_SHARE, UNREAD_SHARE = 1 / 3, 2 / 3
WAIT_SHARE = 1 / 6  # ... and within this share a job that counts at once must count these, too
FIRST_PROGRESS_S = 15.0  # from the first results to the first progress
FIRST_COMMIT_S = 45.0  # ... or to the first commit to a group: by default Kafka Streams commits every 30 s


class Probe:
    """Detects a job that writes a window when it closes, although its manifest does not say so. Later events close the
    window of the opening ones. Such a job then answers the opening events, and never the later ones. Other jobs answer
    both."""

    def __init__(self, poller: ResultPoller, marking: Marking, opening: Sequence[Sentinel]) -> None:
        self._answers, self._marking, self._opening = poller, marking, opening
        self.sent: ExpectedSentinels | None = None

    def poll(self, gone_by: float, *, has_read: bool) -> None:
        """`gone_by` is the elapsed share of the time. `has_read`: by its progress the job has read the opening
        events."""
        is_due = gone_by >= (PROBE_SHARE if has_read else UNREAD_SHARE)
        if self.sent is None and is_due and (later := self._marking.close_opening(self._opening)):
            self.sent = self._answers.awaited(later)

    def answered(self) -> bool:
        return self.sent is None or self._answers.answered(self.sent) >= self.sent.marks


def unsaid_final(manifest: EngineManifest, opening: ExpectedSentinels) -> UsageError:
    return UsageError(
        f"The job answered {many(opening.marks, 'opening event')} only after later events had closed their window, "
        f"and it did not answer those later ones. So it writes a result when a window closes. {_named(manifest)} "
        f"does not declare this. Add this line to its [[sinks]]: final = true"
    )


def first_progress_s(manifest: EngineManifest) -> float:
    return FIRST_COMMIT_S if manifest.progress_group else FIRST_PROGRESS_S


def no_progress(manifest: EngineManifest, seconds: float, notes: Sequence[str]) -> UsageError:
    """`notes` are problems with its progress file."""
    waited = f"The job answered the opening events, and within {seconds:.0f} s after that"
    if manifest.evidence != "none":
        return UsageError(
            f"{waited} its checkpoint held no committed batch. {_named(manifest)} has evidence = "
            f"{manifest.evidence!r}: the query must keep its checkpoint in the folder `checkpoint` of its config. "
            'If it keeps no checkpoint there, write: evidence = "none"'
        )
    if manifest.progress_group:
        return UsageError(
            f"{waited} the consumer group {manifest.progress_group} committed no offsets of the run's topic. "
            f"{_named(manifest)} declares that the job commits to it. Check the group's name ({{run}} and {{topic}} "
            f"are `run` and `topic` of its config), and how often the job commits "
            "(Flink: at its checkpoints; Kafka Streams: `commit.interval.ms`). "
            "If it commits no offsets, write above [[sinks]]: progress = false"
        )
    wrote = f"it wrote no progress that can be read ({'; '.join(notes)})" if notes else "it wrote no progress line"
    return UsageError(
        f"{waited} {wrote} to the file `progress_path` of its config. {_named(manifest)} promises progress, because "
        f"`progress` is true by default. If it commits its offsets to a consumer group when all records below "
        'them are done and written, write: progress = "group:NAME". '
        "If the job reports none, add this line above [[sinks]]: "
        "progress = false"
    )


def unsaid_progress(manifest: EngineManifest) -> UsageError:
    return UsageError(
        f"The job writes progress lines, but {_named(manifest, 'the')} has progress = false. Remove that line."
    )


def _named(manifest: EngineManifest, the: str = "The") -> str:
    return f"{the} manifest of {manifest.id} in {manifest.home}"
