"""The place in docs/start/why.md that explains a FAIL or an UNKNOWN. Pure.

Each word of a verdict has an entry there, and so have the causes of a word that need different steps. A new word or
cause needs a line here and a heading there; tests/docs/test_why.py finds what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import CheckResult, Outcome, Verdict

PAGE = "docs/start/why.md"
NOT_JUDGED = "not-judged"  # a run without a verdict
UPGRADE = "upgrade"  # the words of an upgrade, such as `refused`

# The words of all checks and states of an engine.
WORDS = frozenset(
    {
        "ambiguous",
        "altered",
        "backfill",
        "broken check",
        "changed when stopped",
        "collision",
        "contradicted",
        "crashed",
        "duplicated",
        "early",
        "edited",
        "foreign",
        "forgotten",
        "gone",
        "half a batch",
        "held back",
        "ignored",
        "late-dropped",
        "lost",
        "masked",
        "no batches",
        "no digests",
        "no evidence",
        "no moments",
        "no order",
        "no seam",
        "no speed",
        "no state",
        "no sums",
        "no-memory",
        "no-room",
        "non-monotonic",
        "not evicted",
        "not landed",
        "not read again",
        "old state",
        "only when stopped",
        "oracle",
        "out of order",
        "overrun",
        "partial",
        "phantom",
        "producer-dup",
        "producer-lost",
        "residue",
        "shifted",
        "slow",
        "stale",
        "starved",
        "stuck",
        "unaccounted",
        "unread",
        "unreadable",
        "unserved",
        "vacuous",
        "vanishing",
        "wrong state",
        "wrong value",
    }
)
# The causes of a word: what only their sentences say, and the anchor. The first that fits decides; a sentence that fits
# none leads to the entry of the word.
CAUSES: Mapping[str, Sequence[tuple[str, str]]] = {
    "lost": (
        ("were deleted before it had read them", "lost-deleted-before-it-was-read"),
        ("the checkpoint had lost the first run", "lost-a-batch-planned-anew"),
        ("passed over at the seam", "lost-at-the-seam"),
        ("to which no campaign refers", "lost-an-orphaned-hash"),
        ("twice by the rules", "lost-copies"),
        ("of its windows only", "lost-counted-in-one-window-only"),
        ("late.jsonl", "lost-names-of-late-events"),
        ("it was skipped at", "lost-skipped-at-a-restart"),
        ("the store lost it at", "lost-with-the-store"),
        ("from the cells that went on", "lost-without-its-state"),
    ),
    "duplicated": (
        ("the checkpoint had lost that run", "duplicated-a-forgotten-batch"),
        ("exactly batch ", "duplicated-one-batch-again"),
        ("of a transaction that was aborted", "duplicated-an-aborted-transaction"),
        ("counted twice at the seam", "duplicated-at-the-seam"),
    ),
    "phantom": (
        ("events that must not count here", "phantom-events-that-do-not-count"),
        ("of unknown campaigns", "phantom-keys-of-the-job"),
        ("the results hold ", "phantom"),
        ("existed for a while", "phantom-for-a-while"),
    ),
    "unreadable": (
        ("can't be read as counts", "unreadable"),
        ("could not be read as counts for a while", "unreadable-for-a-while"),
    ),
    "late-dropped": (
        ("the watermark of the job is shorter", "late-dropped-a-short-watermark"),
        ('its manifest has late = "keep"', "late-dropped-against-the-manifest"),
        ("the job drops events by their own lateness", "late-dropped-by-their-own-lateness"),
    ),
    "backfill": (
        ("the batch job has no result", "backfill-no-result"),
        ("so it adds to the results that it finds", "backfill-adds-to-old-results"),
    ),
    "stuck": (
        ("its results are not where its manifest declares them", "stuck-results-elsewhere"),
        ("the manifest expects", "stuck-results-elsewhere"),
        ("the manifest needs", "stuck-results-elsewhere"),
        ("from the manifest", "stuck-results-elsewhere"),
        ("epoch milliseconds", "stuck-results-elsewhere"),
        ("the counts are not whole numbers", "stuck-results-elsewhere"),
        ("must read all partitions from the beginning", "stuck-some-partitions-unread"),
        ("wrote nothing to", "stuck-nothing-written"),
        ("the topic of the results is empty", "stuck-nothing-written"),
        ("the command that reads the results printed no line", "stuck-nothing-written"),
        ("no progress for ", "stuck-no-progress"),
        ("nothing changes any more", "stuck-closing-events-not-counted"),
        ("the results never became stable", "stuck-results-never-stable"),
        ("drain_s", "stuck-closing-events-not-counted"),
        ("ready_s", "stuck"),
        ("no answer within ", "stuck-after-a-fault"),
    ),
    "crashed": (
        ("waits_for_services = true", "crashed-before-kafka-and-redis-were-up"),
        ("it had used all memory of its limit", "crashed-out-of-its-own-memory"),
        ("th time", "crashed-again-and-again"),
    ),
    "no evidence": (("before it had written all of its files", "no-evidence-a-run-that-ended-early"),),
    "not landed": (
        ("it was not killed, because it was done before half", "not-landed-the-kill-of-a-backfill"),
        ("its kill does not prove anything", "not-landed-the-kill-of-a-backfill"),
        ("no record shows that it was tried", "not-landed-not-tried"),
        ("had already been processed", "not-landed-its-moment-never-came"),
        (" is n/a: ", "not-landed-impossible-here"),
        (" was not healed: ", "not-landed-not-undone"),
        ("no effect was seen within", "not-landed-no-effect-seen"),
        ("the moment between commit and next plan was missed", "not-landed-its-moment-never-came"),
        (" never came", "not-landed-its-moment-never-came"),
    ),
    "vacuous": (
        ("nothing was sent", "vacuous-nothing-to-count"),
        ("the Kafka log is empty", "vacuous-nothing-to-count"),
        ("the Kafka log holds no event that has to be counted", "vacuous-nothing-to-count"),
        ("no window ever closed", "vacuous-no-window-closed"),
        ("prove nothing", "vacuous-few-cells"),
        ("no event came after the watermark", "vacuous-nothing-late"),
        ("the latest event was ", "vacuous-nothing-late"),
        ("MiB is the limit", "vacuous-a-small-state"),
        ("does not report the size of its state", "vacuous-a-small-state"),
        ("a window and its lateness are", "vacuous-less-than-a-full-window"),
        ("are a usual batch or a second of the load", "vacuous-a-small-backlog"),
    ),
    "contradicted": (
        ("the first verdict of this run was FAIL", "contradicted-by-the-first-verdict"),
        ("progress.jsonl", "contradicted-by-the-progress"),
        ("the observer polled the results for ", "contradicted-by-the-polls"),
    ),
    "unread": (
        ("must print the results", "unread-by-the-command"),
        ("can't be read: ", "unread-a-table"),
        ("needs readers that understand", "unread-a-table"),
    ),
    "unserved": (
        ("has evicted keys", "unserved-keys-evicted"),
        ("were deleted, but not by this run", "unserved-records-deleted"),
        ("throttled the load of this run", "unserved-load-throttled"),
        ("is gone: its process ended", "unserved"),
        ("no longer answers", "unserved"),
        ("runs but does not answer", "unserved"),
        ("does not let this user", "unserved-a-right-refused"),
        (" refused ", "unserved-a-right-refused"),
    ),
}
# UNKNOWN under these words has another reason than FAIL.
IF_UNKNOWN: Mapping[str, str] = {"late-dropped": "late-dropped-sent-late"}
# A check without a word is UNKNOWN because it lacks something. Its name then leads the sentence.
WITHOUT_A_WORD: Sequence[tuple[str, str]] = (
    ("were not polled during the run", "not-polled"),
    ("the load was cut short", "cut-short"),
    ("were not late but lost", "lost"),
    ("may have made them late", "producer-lost"),
    ("not known: ", "unread"),
    ("the results were not read", "unread"),
    ("the engine is ", "not-reached"),
)


def name(verdict: Verdict) -> str:
    """Return the name of the link for a verdict, such as `docs/start/why.md#lost`; "" for a PASS."""
    if verdict.outcome is Outcome.PASS:
        return ""
    check = leading(verdict)
    return link(anchor(check) if check else "")


def link(to: str) -> str:
    """Return the name of the link to an entry; to the page if the entry is not known."""
    return f"{PAGE}#{to}" if to else PAGE


def leading(verdict: Verdict) -> CheckResult | None:
    """Return the check whose sentence is the verdict's; else the first with the verdict's outcome."""
    worst = [check for check in verdict.checks if check.outcome is verdict.outcome]
    said = (check for check in worst if verdict.sentence.startswith(f"{check.word or check.name}: {check.sentence}"))
    return next(said, worst[0] if worst else None)


def anchor(check: CheckResult) -> str:
    """Return the anchor of the entry for a check that did not pass; "" for one that did, and for an unknown word."""
    if check.outcome is Outcome.PASS:
        return ""
    if not check.word:
        return "cut-short" if check.name == "vacuity" else _cause(WITHOUT_A_WORD, check.sentence)
    if check.word not in WORDS:
        return ""
    if check.outcome is Outcome.UNKNOWN and check.word in IF_UNKNOWN:
        return IF_UNKNOWN[check.word]
    return _cause(CAUSES.get(check.word, ()), check.sentence) or anchor_of(check.word)


def anchor_of(word: str) -> str:
    """Return the anchor of a word's own entry."""
    return word.replace(" ", "-")


def _cause(causes: Sequence[tuple[str, str]], sentence: str) -> str:
    return next((to for said, to in causes if said in sentence), "")
