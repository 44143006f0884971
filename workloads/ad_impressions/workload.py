"""Views of ads per campaign and window, as a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import AD_IMPRESSIONS, RunSpec, TapeSpec
from workloads.ad_impressions.codec import AdCodec
from workloads.ad_impressions.oracle import AdOracle
from workloads.ad_impressions.question import AdQuestion
from workloads.ad_impressions.schema import population_of
from workloads.base import Tables
from workloads.cells import Codes


class AdResults:
    """Results with a hash per campaign. The tables hold the campaign of each ad."""

    def __init__(self, tape: TapeSpec) -> None:
        self._population = population_of(tape)

    @property
    def keys(self) -> Sequence[str]:
        return self._population.campaign_ids

    parts: Sequence[Mapping[str, str]] = ()  # a key has no other parts than the campaign
    number = "opens"

    @property
    def tables(self) -> Tables:
        return Tables(self._population.ad_to_campaign, {"campaigns": self._population.campaign_ids})


class AdImpressions:
    id = AD_IMPRESSIONS
    asks = "how often the ads of each campaign were viewed in each window"
    declaration = ""
    keys = frozenset({"campaigns", "probes", "checksum", "window"})

    def codec(self, tape: TapeSpec) -> AdCodec:
        return AdCodec(population_of(tape), tape.campaigns)

    def oracle(self, spec: RunSpec) -> AdOracle:
        return AdOracle(spec)

    def results(self, tape: TapeSpec) -> AdResults:
        return AdResults(tape)

    def length_ms(self, spec: RunSpec) -> int:
        return spec.window_ms

    def question(self, spec: RunSpec, asked: Mapping[str, str], codes: Codes) -> AdQuestion:
        return AdQuestion(spec, asked, codes)


WORKLOAD = AdImpressions()
