"""Planted mistakes of a question with timers: requests, each answered by the ads that its user has been shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from harness.evidence.ledger import Ledger
from harness.evidence.observed import Observed
from harness.judging.checks.case import RunFacts
from harness.selftest.capping_model import SHOW, SUPPRESS, Action, Rule, actions
from harness.selftest.declared import Events, claims_order, events, honest_run, in_order, of_question, once, swapped
from workloads.declared.codec import column_of
from workloads.declared.declaration import unsealed
from workloads.shipped import shipped

ASKED = of_question("capping", shipped("capping").declaration)
USER = column_of("user")
USERS = 3  # few, so that each reaches its cap
NEVER_MS = 1 << 40


def rules() -> dict[int, Rule]:
    """Return the rule of each user by its number."""
    rows = unsealed(ASKED.tape.declaration).relations(ASKED.tape.seed)["rules"].to_pylist()
    return {user: Rule(row["cap"], row["hour_ms"], row["cool_down_ms"]) for user, row in enumerate(rows)}


def requests() -> Events:
    sent = events(ASKED.tape)
    return {**sent, USER: sent[USER] % USERS + 1}


@once
def planted() -> Iterator[tuple[str, RunFacts]]:
    sent, by_rule = requests(), rules()
    unordered = honest_run(ASKED, sent)
    oracle, right = unordered.oracle, unordered.log_ledger
    left = in_order(unordered.events, oracle)
    honest = claims_order(unordered, left)
    user_of = dict(zip(sent["event_id"].tolist(), sent[USER].tolist(), strict=True))

    def code(value: int, event: int) -> int:
        return oracle.codes.one(value * oracle.groups + user_of[event], event)

    def showing(counts: Ledger) -> RunFacts:
        return replace(honest, observed=Observed(counts, (), left=left))

    def saying(answers: Mapping[int, Action]) -> RunFacts:
        acts = {code(1, event): each.action for event, each in answers.items()}
        shown = {code(2, event): each.shown for event, each in answers.items()}
        return showing(Ledger({**right, **acts, **shown}))

    answers = acted(sent, by_rule)
    capped = next(event for event in sorted(answers) if answers[event] == (SUPPRESS, by_rule[user_of[event]].cap))
    cooling = next(event for event in sorted(answers) if answers[event] == (SUPPRESS, 1))
    yield "requests, all of them right", saying(answers)
    yield "a request's timer that fired twice", showing(right + Ledger({code(0, capped): 1}))
    lost = {code(value, capped): 0 for value in range(len(oracle.values))}
    yield "a request's timer that was lost, and its action with it", showing(Ledger({**right, **lost}))
    yield "an hour's timer that fired twice, so that an ad is above the cap", saying({capped: Action(SHOW, 1)})
    never = {user: rule._replace(hour_ms=NEVER_MS) for user, rule in by_rule.items()}
    yield "hours' timers that are lost, so that no cap is reset", saying(acted(sent, never))
    at_once = {user: rule._replace(cool_down_ms=1) for user, rule in by_rule.items()}
    yield "cool-downs that are ignored", saying(acted(sent, at_once))
    yield "an ad in a cool-down", saying({cooling: Action(SHOW, 2)})
    yield "a request that is suppressed, and counted as an ad", saying({cooling: Action(SUPPRESS, 2)})
    kept = {event: answer for event, answer in answers.items() if user_of[event] != 1}
    yield "a user whose state was lost half-way", saying({**kept, **_forgotten(sent, by_rule, user=1)})
    yield "a user's actions in another order", swapped(honest, key=1)


def acted(sent: Events, by_rule: Mapping[int, Rule]) -> dict[int, Action]:
    """Return the answer to each request by the model."""
    asked = defaultdict(list)
    for event, user, at_ms in zip(*(sent[name].tolist() for name in ("event_id", USER, "event_time_ms")), strict=True):
        asked[user].append((at_ms, event))
    return {event: answer for user in asked for event, answer in actions(asked[user], by_rule[user]).items()}


def _forgotten(sent: Events, by_rule: Mapping[int, Rule], user: int) -> dict[int, Action]:
    """Return the answers to a user if its second half begins as new."""
    of_user = sent[USER] == user
    middle_ms = np.median(sent["event_time_ms"][of_user])
    halves = (of_user & (sent["event_time_ms"] < middle_ms), of_user & (sent["event_time_ms"] >= middle_ms))
    parts = [acted({name: column[half] for name, column in sent.items()}, by_rule) for half in halves]
    return {event: answer for part in parts for event, answer in part.items()}
