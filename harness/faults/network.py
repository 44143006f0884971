"""The network family: traffic between the engine and Kafka or Redis is slowed, dropped, cut or reset.

Only the engine reaches that service through a proxy (harness/services/proxy.py); the generator, the observer and the
harness's own clients bypass it. Proof: our own connection through the proxy, opened before the fault, is affected.
Where single connections are struck, the proxy counts them, and Redis' own command statistics show how many commands ran
without a delivered reply.

A network can't tear a hole into a TCP stream. So connections with dropped bytes are reset when the fault is undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from harness.faults.base import ANY_MOMENT, PROGRESS, Context, Kind
from harness.faults.run_at_poll import Moment
from harness.faults.strike import Strike, struck_by
from harness.model import FaultSpec, UsageError
from harness.services.link import NAMES, Link
from harness.services.ping import Answered, Ping
from harness.services.proxy import SIDES, Statistics, Toxic
from harness.util.durations import seconds
from harness.util.suggest import nearest
from harness.util.texts import many

BOTH = "both"
BEFORE_POLLS = 3
JITTER_POLLS = 8
PROBE_S = 0.25  # the probe is so large that a narrow link takes this long
MOST_PROBE_BYTES = 500_000
ANSWER_DEADLINE_S = 20.0
HUNG_MS = 1000
SHORT_OF = 0.95  # timers may be a little early


class Options:
    """The parsed options of a fault."""

    def __init__(self, spec: FaultSpec) -> None:
        self._spec = spec

    @property
    def link(self) -> str:
        return self._one_of("link", NAMES) if "link" in self._spec.options else "redis"

    @property
    def sides(self) -> tuple[str, ...]:
        side = self._one_of("side", (*SIDES, BOTH))
        return SIDES if side == BOTH else (side,)

    def ms(self, name: str) -> float:
        return seconds(self._spec.options[name], name) * 1000

    def number(self, name: str) -> int:
        return int(self._spec.options[name])

    def _one_of(self, name: str, words: tuple[str, ...]) -> str:
        if (text := self._spec.options[name]) not in words:
            allowed = f"{name} = {text!r} is not one of {', '.join(words)}{nearest(text, words)}"
            raise UsageError(f"The fault {self._spec.text!r} can't be parsed: {allowed}.")
        return text


class _OnLink(Strike):
    """The base class of the family: its link, and our own connection on it."""

    colour = "tab:purple"
    land_within_ms = 60_000.0  # the engine must have connected, and our probes are slow during the fault

    def __init__(self, link: str) -> None:
        self._name = link
        self._ping: Ping | None = None

    def healed(self, now: Moment) -> str:
        self._hang_up()
        with suppress(OSError), Ping(self._name, self._link(now).address) as ping:
            if answered := ping.measure():
                return f"a new connection is answered in {answered.ms:.1f} ms"
        return ""

    def _link(self, now: Moment) -> Link:
        assert now.field is not None, "a run without services has no links"
        return now.field.links[self._name]

    def _connect(self, now: Moment, size_bytes: int = 0) -> Answered | None:
        """Open our connection; return the fastest of some probes before the fault, or None if none was answered."""
        self._hang_up()
        with suppress(OSError):
            self._ping = Ping(self._name, self._link(now).address)
            looks = [self._ping.measure(size_bytes) for _ in range(BEFORE_POLLS)]
            return min((look for look in looks if look), key=lambda look: look.ms, default=None)
        return None

    def _measure(self, size_bytes: int = 0) -> Answered | None:
        """Probe over the open connection; drop it if it breaks."""
        if self._ping is None:
            return None
        try:
            answered = self._ping.measure(size_bytes, ANSWER_DEADLINE_S)
        except OSError:
            answered = None
        if answered is None:
            self._hang_up()
        return answered

    def _hang_up(self) -> None:
        if self._ping:
            self._ping.close()
        self._ping = None


class Slowed(_OnLink):
    """The link gets slower by a measurable amount: each probe takes at least the computed time."""

    def __init__(self, link: str, sides: tuple[str, ...], toxic: Toxic, hold_ms: float, words: str) -> None:
        super().__init__(link)
        self._sides, self._toxic, self._words = sides, toxic, words
        self.hold_ms = hold_ms
        narrow_bytes = toxic.kbps * 125 * PROBE_S if toxic.kbps else toxic.slice_bytes * 40
        self._size_bytes = min(MOST_PROBE_BYTES, int(narrow_bytes))
        self._before_ms = 0.0

    def inject(self, now: Moment) -> str:
        before = self._connect(now, self._size_bytes)
        self._before_ms = before.ms if before else 0.0
        self._link(now).trouble(self._toxic, self._sides)
        size = f" of {before.asked_bytes:,} bytes" if before and self._size_bytes else ""
        return f"{self._words}: before that, a probe{size} was answered in {self._before_ms:.1f} ms"

    def landed(self, now: Moment) -> str:
        seen = self._suffered() if self._before_ms else ""
        others = self._link(now).statistics().open - 1
        return f"{seen}, and the link holds {many(others, 'connection')} of the engine" if seen and others > 0 else ""

    def heal(self, now: Moment) -> None:
        self._link(now).clear()

    def healed(self, now: Moment) -> str:
        if self._ping is None:  # it may have broken for another reason
            self._connect(now, self._size_bytes)
        answered = self._measure(self._size_bytes)
        if answered is None or answered.ms >= self._least_ms(answered):
            return ""
        self._hang_up()
        return f"cleared, and a probe was answered in {answered.ms:.1f} ms"

    def _suffered(self) -> str:
        answered = self._measure(self._size_bytes)
        if answered is None or answered.ms < SHORT_OF * self._least_ms(answered) or answered.ms <= self._before_ms:
            return ""
        return (
            f"the same connection now took {answered.ms:.0f} ms for a probe (at least "
            f"{self._least_ms(answered):.0f} ms)"
        )

    def _least_ms(self, answered: Answered) -> float:
        bytes_of = {"request": answered.asked_bytes, "reply": answered.answered_bytes}
        return sum(self._toxic.least_ms(bytes_of[side]) for side in self._sides)


class Jittered(Slowed):
    """Each piece is delayed by a random time: seen in the spread of the probes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._looks: list[float] = []

    def heal(self, now: Moment) -> None:
        self._looks = []
        super().heal(now)

    def healed(self, now: Moment) -> str:
        if self._ping is None:
            self._connect(now)
        if self._sample() < JITTER_POLLS or max(self._looks) >= self._toxic.jitter_ms / 2:
            return ""
        self._hang_up()
        return f"cleared, and {JITTER_POLLS} answers took {min(self._looks):.1f} to {max(self._looks):.1f} ms"

    def _suffered(self) -> str:
        if self._sample() < JITTER_POLLS or max(self._looks) - min(self._looks) < self._toxic.jitter_ms / 4:
            return ""
        spread = f"{min(self._looks):.0f} to {max(self._looks):.0f} ms"
        return f"{JITTER_POLLS} answers on the same connection now took {spread}"

    def _sample(self) -> int:
        if answered := self._measure():
            self._looks = [*self._looks, answered.ms][-JITTER_POLLS:]
        return len(self._looks)


class Swallowed(_OnLink):
    """All bytes are dropped silently: connections stay open."""

    def __init__(self, link: str, sides: tuple[str, ...], hold_ms: float) -> None:
        super().__init__(link)
        self._sides = sides
        self.hold_ms = hold_ms
        self._asked_ms = self._ours_bytes = self._resets = 0
        self._before = Statistics()

    def inject(self, now: Moment) -> str:
        answered, link = self._connect(now), self._link(now)
        self._before = link.trouble(Toxic(swallow=True), self._sides)
        self._asked_ms = now.now_ms
        if self._ping and answered:
            self._ours_bytes = self._ping.ask() if "request" in self._sides else answered.answered_bytes
            if "request" not in self._sides:
                self._ping.ask()
        told = f"answered in {answered.ms:.1f} ms" if answered else "not answered"
        return f"each {' and '.join(self._sides)} is dropped: before that, a probe was {told}"

    def landed(self, now: Moment) -> str:
        if self._ping is None or now.now_ms - self._asked_ms < HUNG_MS or self._ping.hear(0.001) is not None:
            return ""
        after = self._link(now).statistics()
        theirs_bytes = sum(after.swallowed.values()) - sum(self._before.swallowed.values()) - self._ours_bytes
        if theirs_bytes <= 0:
            return ""
        silent_s = (now.now_ms - self._asked_ms) / 1000
        return (
            f"a probe on an older connection got no answer for {silent_s:.1f} s, and {theirs_bytes:,} bytes of "
            f"the engine are gone; {many(after.open - 1, 'connection')} of it still open"
        )

    def heal(self, now: Moment) -> None:
        link = self._link(now)
        before = link.statistics().resets
        self._resets = link.clear().resets - before

    def healed(self, now: Moment) -> str:
        answered = super().healed(now)
        return f"the proxy reset {many(self._resets, 'connection')} with lost bytes, and {answered}" if answered else ""


class Reset(_OnLink):
    """All current connections are reset."""

    def __init__(self, link: str) -> None:
        super().__init__(link)
        self._theirs = 0

    def inject(self, now: Moment) -> str:
        self._strike(now)
        return "every connection was reset (RST)"

    def landed(self, now: Moment) -> str:
        try:
            if self._theirs and self._ping:
                self._ping.hear(1.0)
        except OSError as heard:
            return f"{many(self._theirs, 'connection')} of the engine, and ours, which raised {type(heard).__name__}"
        self._strike(now)  # the engine had no connection at that moment: retry
        return ""

    # There is nothing to heal: a reset is over at once.

    def _strike(self, now: Moment) -> None:
        ours = self._connect(now)
        link = self._link(now)
        before = link.statistics().resets
        self._theirs = max(0, link.reset().resets - before - 1) if ours else 0


class Severed(_OnLink):
    """Several connections end in the middle of something: after some bytes, or between execution and reply."""

    land_within_ms = 120_000.0  # the engine has to write, and may have to restart after each but the last

    def __init__(self, link: str, sides: tuple[str, ...], toxic: Toxic, words: str, *, executed: bool) -> None:
        super().__init__(link)
        self._sides, self._toxic, self._words = sides, toxic, words
        self._executed = executed  # proved only if Redis has executed the commands without replies
        self._before = Statistics()
        self._calls: Counter[str] = Counter()

    def inject(self, now: Moment) -> str:
        self._calls = calls(now)
        self._before = self._link(now).trouble(self._toxic, self._sides)
        return self._words

    def landed(self, now: Moment) -> str:
        after = self._link(now).statistics()
        struck_times = after.struck - self._before.struck
        if struck_times < self._toxic.times or after.ending:
            return ""
        unanswered = Counter(after.unanswered) - Counter(self._before.unanswered)
        answered = Counter(after.answered) - Counter(self._before.answered)
        executed = calls(now) - self._calls - answered
        if self._executed and (not unanswered or unanswered - executed):
            return ""
        dropped = after.swallowed.get("reply", 0) - self._before.swallowed.get("reply", 0)
        seen = f"{many(struck_times, 'connection')} reset by the proxy, which dropped {dropped:,} bytes of replies"
        told = ", ".join(
            f"{min(executed[name], count):,} of {count:,} {name}" for name, count in sorted(unanswered.items())
        )
        return f"{seen}; by its own statistics Redis has executed {told} that were never answered" if told else seen

    def heal(self, now: Moment) -> None:
        self._link(now).clear()


def calls(now: Moment) -> Counter[str]:
    """Return how often Redis has executed each command."""
    assert now.field is not None, "a run without services has no Redis"
    stats = cast(dict[str, dict[str, int]], now.field.results.info("commandstats"))
    return Counter({name.removeprefix("cmdstat_").upper(): each["calls"] for name, each in stats.items()})


def _latency(read: Options) -> Strike:
    late_ms = read.number("ms")
    return Slowed(
        read.link, read.sides, Toxic(delay_ms=late_ms), read.ms("for"), _slow(read, f"arrive {late_ms} ms later")
    )


def _jitter(read: Options) -> Strike:
    late_ms = read.number("ms")
    words = _slow(read, f"arrive up to {late_ms} ms later, each piece with another delay")
    return Jittered(read.link, read.sides, Toxic(jitter_ms=late_ms), read.ms("for"), words)


def _bandwidth(read: Options) -> Strike:
    kbps = read.number("kbps")
    words = _slow(read, f"are limited to {kbps} kilobits per second and connection")
    return Slowed(read.link, read.sides, Toxic(kbps=kbps), read.ms("for"), words)


def _slice(read: Options) -> Strike:
    size, gap_ms = read.number("bytes"), read.ms("gap")
    words = _slow(read, f"arrive in pieces of {size} bytes with {gap_ms:g} ms between them")
    return Slowed(read.link, read.sides, Toxic(slice_bytes=size, gap_ms=gap_ms), read.ms("for"), words)


def _slow(read: Options, how: str) -> str:
    return f"{' and '.join(read.sides)} bytes between engine and {read.link} {how}"


def _limit(read: Options) -> Strike:
    size, times = read.number("bytes"), read.number("times")
    words = f"each connection to {read.link} is cut after {size:,} more bytes of a {' or a '.join(read.sides)}"
    return Severed(read.link, read.sides, Toxic(cut_after_bytes=size, times=times), words, executed=False)


def _reset_reply(read: Options) -> Strike:
    times = read.number("times")
    words = "the next write reaches Redis; its reply is dropped, and its connection is reset"
    return Severed("redis", SIDES, Toxic(lose_reply=True, times=times), words, executed=True)


def _kind(
    name: str,
    what: str,
    correct: str,
    build: Callable[[Options], Strike],
    options: Mapping[str, str],
    *,
    moments: tuple[str, ...] = ANY_MOMENT,
) -> Kind:
    links = NAMES if "link" in options else ("redis",)
    make = struck_by(lambda spec, _: build(Options(spec)), _missing)
    needs = "an embedded Kafka and Redis" if len(links) > 1 else "an embedded Redis"
    return Kind(name, what, correct, make, needs, options, moments, links=links)


def _missing(fault: FaultSpec, context: Context) -> tuple[str, ...]:
    """Refuse existing servers: a Kafka sends clients its own address, and a certificate does not name our proxy."""
    link, spec = Options(fault).link, context.spec
    if context.manifest.simulated:
        return (f"the fake engine has no connection to {link}",)
    if spec.kafka if link == "kafka" else spec.redis:
        return (f"this run uses an existing server for {link}; the proxy works only with an embedded one",)
    return ()


_LINK = {"link": "redis", "side": BOTH}
_STALLS = "is slower during the fault, then catches up; no count changes"

KINDS = (
    _kind(
        "net-latency",
        "every byte between the engine and a service arrives later",
        _STALLS,
        _latency,
        {**_LINK, "for": "5s", "ms": "200"},
    ),
    _kind(
        "net-jitter",
        "the bytes between the engine and a service arrive later, each piece with another delay",
        _STALLS,
        _jitter,
        {**_LINK, "for": "5s", "ms": "200"},
    ),
    _kind(
        "net-bandwidth",
        "each connection between the engine and a service is limited to some kilobits per second",
        _STALLS,
        _bandwidth,
        {**_LINK, "for": "5s", "kbps": "256"},
    ),
    _kind(
        "net-slice",
        "the bytes between the engine and a service arrive in tiny pieces with pauses",
        "reassembles every message; no count changes",
        _slice,
        {**_LINK, "for": "5s", "bytes": "100", "gap": "1ms"},
    ),
    _kind(
        "net-blackhole",
        "the bytes between the engine and a service are dropped; connections stay open and are reset afterwards",
        "waits, or abandons the batch and runs it again; no count changes",
        lambda read: Swallowed(read.link, read.sides, read.ms("for")),
        {**_LINK, "for": "5s"},
        moments=PROGRESS,
    ),
    _kind(
        "net-reset",
        "every open connection between the engine and a service is reset, once",
        "reconnects, or stops loudly and runs the batch again; no count changes",
        lambda read: Reset(read.link),
        {"link": "redis"},
    ),
    _kind(
        "net-limit",
        "a connection between the engine and a service is cut after some bytes: half of a pipeline is executed",
        "runs the batch again and counts executed commands once: it writes totals, or checks a fence in the same step",
        _limit,
        {"link": "redis", "side": "request", "bytes": "2000", "times": "1"},
        moments=PROGRESS,
    ),
    _kind(
        "redis-reset-reply",
        "Redis executes a command, and the connection is reset before its reply arrives",
        "does not treat a missing reply as a missing write: a repeated write changes nothing",
        _reset_reply,
        {"times": "1"},
        moments=PROGRESS,
    ),
)
