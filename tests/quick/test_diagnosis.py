"""The first minute with an own job: what it wrote, what its manifest looks for, and what to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.diagnosis import Wanted, explain
from harness.engines import fake
from harness.engines.manifest import MANIFEST_KEYS
from harness.observe import ELSEWHERE, NO_RESULT, Row

CAMPAIGN, OTHER, AD = (f"{n:08x}-aaaa-4bbb-8ccc-000000000000" for n in (0x11D61A22, 0x49505597, 0xAD))
START = 1_790_000_000_000
MANIFEST = replace(fake.MANIFEST, results="redis:compact")
TEMPLATE = replace(MANIFEST, results="redis:template", key="counts:{campaign}", field="{window}")
WANTED = Wanted(MANIFEST, (), {CAMPAIGN, OTHER}, {AD}, {START}, 10_000, 4)


def told(*rows, manifest=MANIFEST, **changes):
    found = explain(rows, replace(WANTED, manifest=manifest, **changes))
    return found.sentence, found.lines


def cell(field=START, value="4", key=CAMPAIGN):
    return Row(key, str(field), value, "hash")


def test_what_is_right_needs_no_diagnosis():
    assert told(cell(), Row("campaigns", "", "", "set"), Row(f"updated:{CAMPAIGN}", str(START), "1", "hash")) == (
        "",
        (),
    )


@pytest.mark.parametrize("manifest", [MANIFEST, TEMPLATE])
@pytest.mark.parametrize(
    ("row", "lines"),
    [
        (
            Row(f"stats:{CAMPAIGN}:views", str(START), "4", "hash"),
            ('key = "stats:{campaign}:views"', 'field = "{window}"'),
        ),
        (Row(f"v/{CAMPAIGN}/{START}", "", "4", "string"), ('key = "v/{campaign}/{window}"',)),
        (Row(f"v_{START}_{CAMPAIGN}", "", "", "string"), ('key = "v_{window}_{campaign}"',)),
        (Row(f"views-{START}", CAMPAIGN, "4", "hash"), ('key = "views-{window}"', 'field = "{campaign}"')),
        (Row(f"{CAMPAIGN}:{START}", "views", "4", "hash"), ('key = "{campaign}:{window}"', 'field = "views"')),
        (
            Row(f"w:{CAMPAIGN}", str(START + 10_000), "4", "hash"),
            ('key = "w:{campaign}"', 'field = "{window}"', 'window_key = "end"'),
        ),
    ],
    ids=["hash", "string", "window first", "campaign as field", "constant field", "end of window"],
)
def test_keys_of_another_pattern_are_named_with_the_lines_that_fit(row, lines, manifest):
    sentence, found = told(row, manifest=manifest)

    assert f"the job wrote keys such as {row.key!r}" in sentence
    assert "the manifest looks for" in sentence
    assert found == ('results = "redis:template"', *lines)
    for line in lines:
        assert line.partition(" ")[0] in MANIFEST_KEYS


def test_what_the_manifest_looks_for_is_said_in_its_own_words():
    row = Row(f"stats:{CAMPAIGN}", str(START), "4", "hash")

    assert 'hashes by key = "counts:{campaign}" with fields by field = "{window}"' in told(row, manifest=TEMPLATE)[0]
    assert 'strings by key = "c:{campaign}:{window}"' in told(
        row, manifest=replace(TEMPLATE, key="c:{campaign}:{window}", field="")
    )[0]  # fmt: skip
    assert "a hash named by the campaign" in told(row)[0]


def test_of_many_keys_those_that_could_hold_the_counts_are_taken():
    rows = [
        Row("lock:leader", "", "", "string"),
        Row(f"changed:{CAMPAIGN}", str(START), str(START + 77), "hash"),
        Row(f"names:{CAMPAIGN}", "title", "shoes", "hash"),
        Row(f"views:{CAMPAIGN}", str(START), "4", "hash"),
    ]

    assert 'key = "views:{campaign}"' in told(*rows)[1]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (START // 1000, "that is its start in seconds"),
        (START // 1000 + 10, "that is its end in seconds"),
        (f"{START // 1000}.0", "that is its start in seconds with a point"),
        (START * 1000, "that is its start in microseconds"),
        (START * 1_000_000, "that is its start in nanoseconds"),
        (START + 9_999, "that is its last millisecond in milliseconds"),
        (START + 3_600_000, "that is its start by a clock +1 h away from UTC in milliseconds"),
        (START + 1234, "no multiple of the 10000 ms of a window"),
        ("2026-11-22 16:00:00", "that is a date,"),
        ("2026-11-22T16:00:00.000+01:00", "that is a date,"),
        (77, "no event of ours lies in such a window"),
    ],
)
def test_windows_in_another_unit_are_named(field, words):
    sentence, lines = told(cell(field))

    assert f"the job calls a window '{field}'" in sentence
    assert words in sentence
    assert f"such as {START}" in sentence
    assert lines == ()


def test_a_window_called_by_its_end_needs_one_line():
    assert told(cell(START + 10_000)) == (
        f"the job calls a window '{START + 10_000}', which is its end: the manifest needs window_key = \"end\"",
        ('window_key = "end"',),
    )


def test_a_window_called_by_its_start_where_the_manifest_says_end_is_shown_as_it_was_written():
    ends = replace(MANIFEST, window_key="end")

    assert told(cell(START), manifest=ends) == ("", ()), "it was written as an end, and translated"
    sentence, _ = told(cell(START - 10_000), manifest=ends)
    assert f"the job calls a window '{START}', which is its start" in sentence
    assert 'window_key = "end", which has to go' in sentence


def test_another_pattern_and_another_unit_are_both_said():
    sentence, lines = told(Row(f"counts/{CAMPAIGN}", str(START // 1000), "4", "hash"))

    assert "that is its start in seconds" in sentence
    assert lines == ('results = "redis:template"', 'key = "counts/{campaign}"', 'field = "{window}"')


@pytest.mark.parametrize(
    ("value", "words"),
    [("04", "write 4"), ("4.0", "write 4"), ("four", "write a whole number"), ("4.5", "write a whole number")],
)
def test_counts_that_are_no_whole_numbers_are_named(value, words):
    sentence, _ = told(cell(value=value))

    assert (
        f"the counts are no whole numbers: {value!r} was written for window {START} of campaign {CAMPAIGN}" in sentence
    )
    assert sentence.endswith(f"; {words}")


def test_too_few_means_that_a_partition_is_not_read():
    assert "the job counted 3 of 4 events, of which there is one in each partition" in told(cell(value="3"))[0]
    assert told(cell(value="5"))[0] == "", "too many is for the checks to name"


def test_the_schema_of_the_original_is_recognised():
    rows = [cell(value=OTHER.replace("a", "b")), Row(OTHER.replace("a", "b"), "seen_count", "4", "hash")]

    assert told(*rows)[1] == ('results = "redis:yahoo"',)


def test_counts_of_the_compact_schema_are_counts_whatever_pattern_the_manifest_gives():
    """Its rows keep the names that they have."""
    assert told(cell(), manifest=TEMPLATE)[0] == ""


def test_another_database_is_named():
    sentence, _ = told(elsewhere={3: 8})

    assert "database 3 holds 8 keys" in sentence
    assert "`redis` in the orders, its number at the end included" in sentence


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ("redis:compact", "the job wrote nothing to Redis: does it read the topic"),
        ("kafka:counts", "the topic of the results is empty: its name is `results_topic`"),
        ("command", "the command that reads the results printed no line"),
    ],
)
def test_nothing_at_all_is_said_to_be_nothing(results, words):
    assert words in told(manifest=replace(MANIFEST, results=results))[0]


def test_a_job_that_reads_all_and_counts_nothing_is_shown_what_it_read():
    sentence, _ = told(done=4, record='{"room": "attic"}')

    assert "says that it has done 4 records, and wrote nothing" in sentence
    assert sentence.endswith('The first is {"room": "attic"}')


def test_keys_that_the_manifest_calls_its_own_are_not_taken_for_results():
    assert "wrote nothing" in told(Row("fence:7", "", "", "string"), bookkeeping=("fence:*",))[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Row(AD, str(START), "4", "hash"), "that is the id of an ad"),
        (Row(f"x:{CAMPAIGN.upper()}", str(START), "4", "hash"), "small letters"),
        (Row(f"x:{CAMPAIGN}", "", "", "zset"), "of a zset no counts are read"),
        (Row("totals", "shoes", "4", "hash"), "no id of a campaign is in it"),
    ],
)
def test_what_no_manifest_can_make_up_for_is_said(row, words):
    sentence, lines = told(row)

    assert f"the job wrote keys such as {row.key!r}" in sentence
    assert words in sentence
    assert lines == ()


def test_records_and_lines_are_shown_beside_what_they_should_be():
    record = Row("t[0@0]", "", 'b\'{"campaign_id": "x", "views": 4}\'', NO_RESULT)
    line = Row("line 1", "", "campaign;window;count", NO_RESULT)

    topic, command = (
        told(row, manifest=replace(MANIFEST, results=results))[0]
        for row, results in ((record, "kafka:counts"), (line, "command"))
    )

    assert 'records such as b\'{"campaign_id": "x", "views": 4}\'' in topic
    assert "JSON objects with `campaign`, `window` and `count`" in topic
    assert "the command printed lines such as 'campaign;window;count'" in command
    assert "lines of campaign,window,count" in command


def test_results_of_a_topic_or_a_command_in_another_unit_are_explained_too():
    for results in ("kafka:counts", "command"):
        sentence, _ = told(cell(START // 1000), manifest=replace(MANIFEST, results=results))
        assert "that is its start in seconds" in sentence
        assert "the results are called" in told(cell(key="shoes"), manifest=replace(MANIFEST, results=results))[0]


def test_counts_in_our_own_schema_are_named_where_the_manifest_says_another_one():
    sentence, lines = told(cell()._replace(kind=ELSEWHERE), manifest=TEMPLATE)

    assert lines == ('results = "redis:compact"',)
    assert f"the job wrote a hash named by the campaign, {CAMPAIGN!r} with fields such as '{START}'" in sentence
