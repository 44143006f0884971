"""The first minute with an own job: what it wrote, what its manifest looks for, and what to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.engines import fake
from harness.engines.manifest_keys import MANIFEST_KEYS
from harness.results.redis_scan import ELSEWHERE, NO_RESULT, Row
from harness.runner.first_minute_diagnosis import Wanted, explain

CAMPAIGN, OTHER, AD = (f"{n:08x}-aaaa-4bbb-8ccc-000000000000" for n in (0x11D61A22, 0x49505597, 0xAD))
START = 1_790_000_000_000
MANIFEST = replace(fake.MANIFEST, results="redis:compact")
TEMPLATE = replace(MANIFEST, results="redis:template", key="counts:{campaign}", field="{window}")
WANTED = Wanted(MANIFEST, (), {key: {} for key in (CAMPAIGN, OTHER)}, {AD}, {START}, 10_000, 4)


RIDES = {
    f"{value}:{city}": {"city": city, "value": value}
    for value in ("trips", "max")
    for city in ("Ulm", "Bad Tölz", "Bad")
}


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
    assert "the manifest expects" in sentence
    assert found == ('results = "redis:template"', *lines)
    for line in lines:
        assert line.partition(" ")[0] in MANIFEST_KEYS


@pytest.mark.parametrize(
    ("row", "lines"),
    [
        (Row(f"stats:Bad Tölz:{START}", "trips", "4", "hash"), ('key = "stats:{city}:{window}"', 'field = "{value}"')),
        (Row("trips/Bad", str(START), "4", "hash"), ('key = "{value}/{city}"', 'field = "{window}"')),
        (Row("t/trips:Ulm", str(START), "4", "hash"), ('key = "t/{campaign}"', 'field = "{window}"')),
        (Row(f"Ulm@{START}.max", "", "", "string"), ('key = "{city}@{window}.{value}"',)),
        (
            Row("Ulm", f"max {START + 10_000}", "4", "hash"),
            ('key = "{city}"', 'field = "{value} {window}"', 'window_key = "end"'),
        ),
    ],
)
@pytest.mark.parametrize("manifest", [MANIFEST, TEMPLATE])
def test_keys_of_any_question_are_found_again_in_what_a_job_wrote(row, lines, manifest):
    sentence, found = told(row, manifest=manifest, parts_of_key=RIDES)

    assert f"the job wrote keys such as {row.key!r}" in sentence
    assert found == ('results = "redis:template"', *lines)


def test_lines_that_a_manifest_needs_for_a_question_without_windows():
    wanted = {"parts_of_key": RIDES, "number": "", "windows": {0}}

    assert told(Row("all:Ulm", "trips", "4", "hash"), **wanted)[1][1:] == ('key = "all:{city}"', 'field = "{value}"')


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (Row("Ulm", str(START), "4", "hash"), "{value} is missing, so cells of different keys would be the same"),
        (Row("Ulm", "trips", "4", "hash"), "{window} or {opens} or {end} is missing"),
        (Row(f"Ulm:{START}", "Ulm", "4", "hash"), "{value} is missing, so cells of different keys would be the same"),
    ],
)
def test_what_a_pattern_would_lack_is_said(row, why):
    sentence, lines = told(row, parts_of_key=RIDES)

    assert sentence.endswith(f", and {why}")
    assert '; as a pattern it is key = "{city}' in sentence
    assert lines == ()


@pytest.mark.parametrize(("window_ms", "names"), [(10_000, "`window` or `opens` or `end`"), (0, "`window` or `opens`")])
def test_records_by_the_names_of_a_question_are_described(window_ms, names):
    row = Row("t[0@0]", "", "b'{}'", NO_RESULT)
    wanted = {"manifest": replace(MANIFEST, results="kafka:out"), "parts_of_key": RIDES, "window_ms": window_ms}

    assert told(row, **wanted)[0].endswith(f"`count`, or with `city`, {names}, `trips`, `max`")


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
        (START + 3_600_000, "that is its start on a clock +1 h away from UTC in milliseconds"),
        (START + 1234, "not a multiple of the window length of 10000 ms"),
        ("2026-11-22 16:00:00", "that is a date,"),
        ("2026-11-22T16:00:00.000+01:00", "that is a date,"),
        (77, "no event of the load belongs to such a window"),
    ],
)
def test_windows_in_another_unit_are_named(field, words):
    sentence, lines = told(cell(field))

    assert f"the job names a window '{field}'" in sentence
    assert words in sentence
    assert f"such as {START}" in sentence
    assert lines == ()


def test_a_window_called_by_its_end_needs_one_line():
    assert told(cell(START + 10_000)) == (
        f"the job names a window '{START + 10_000}', which is its end: the manifest needs window_key = \"end\"",
        ('window_key = "end"',),
    )


def test_a_window_called_by_its_start_where_the_manifest_says_end_is_shown_as_it_was_written():
    ends = replace(MANIFEST, window_key="end")

    assert told(cell(START), manifest=ends) == ("", ()), "it was written as an end, and translated"
    sentence, _ = told(cell(START - 10_000), manifest=ends)
    assert f"the job names a window '{START}', which is its start" in sentence
    assert 'remove window_key = "end"' in sentence


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
        f"the counts are not whole numbers: {value!r} was written for window '{START}' of campaign '{CAMPAIGN}'"
        in sentence
    )
    assert sentence.endswith(f"; {words}")


def test_too_few_means_that_a_partition_is_not_read():
    assert "the job counted 3 of 4 events" in told(cell(value="3"))[0]
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
    assert "`redis` in the config" in sentence


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ("redis:compact", "the job wrote nothing to Redis. Check that it reads"),
        ("kafka:counts", "the topic of the results is empty; its name is `results_topic`"),
        ("command", "the command that reads the results printed no line"),
    ],
)
def test_nothing_at_all_is_said_to_be_nothing(results, words):
    assert words in told(manifest=replace(MANIFEST, results=results))[0]


def test_a_job_that_reads_all_and_counts_nothing_is_shown_what_it_read():
    sentence, _ = told(done=4, record='{"room": "attic"}')

    assert "reports 4 records as done, but wrote nothing" in sentence
    assert sentence.endswith('The first one is {"room": "attic"}')


@pytest.mark.parametrize("results", ["redis:compact", "kafka:counts", "command"])
@pytest.mark.parametrize("done", [0, 8])
def test_results_that_come_when_windows_close_are_thought_of(results, done):
    wanted = {"manifest": replace(MANIFEST, results=results), "done": done, "partitions": 4}

    assert "final = true" in told(**wanted)[0]
    assert "a parallelism above the 4 partitions" in told(**wanted, closed=True)[0]


@pytest.mark.parametrize(
    ("row", "closed", "sure"),
    [
        (Row(f"stats:{CAMPAIGN}", str(START), "4", "hash"), True, True),
        (Row(f"stats:{CAMPAIGN}:{START}", "", "", "string"), False, True),
        (Row(f"stats:{CAMPAIGN}:{START}", "", "", "string"), True, False),  # its own, while a window is open
        (Row(f"totals:{START}", "views", "4", "hash"), False, True),
        (Row("lock:leader", "", "", "string"), False, False),
        (Row("meta", "started", "17", "hash"), False, False),
        (cell(START // 1000), False, True),
        (cell(START - 10**7), False, False),
        (cell(value="3"), False, False),
    ],
)
def test_only_what_names_our_windows_is_surely_a_result(row, closed, sure):
    assert explain([row], replace(WANTED, closed=closed)).sure == sure


def test_keys_that_the_manifest_calls_its_own_are_not_taken_for_results():
    assert "wrote nothing" in told(Row("fence:7", "", "", "string"), bookkeeping=("fence:*",))[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Row(AD, str(START), "4", "hash"), "that is the id of an ad"),
        (Row(f"x:{CAMPAIGN.upper()}", str(START), "4", "hash"), "lower case"),
        (Row(f"x:{CAMPAIGN}", "", "", "zset"), "counts are not read from a zset, but a command can print them"),
        (Row("totals", "shoes", "4", "hash"), "it contains no id of a campaign"),
    ],
)
def test_what_no_manifest_can_make_up_for_is_said(row, words):
    sentence, lines = told(row)

    assert f"the job wrote keys such as {row.key!r}" in sentence
    assert words in sentence
    assert lines == ()


def test_keys_of_a_question_of_ones_own_are_no_ids_of_campaigns():
    sentence, _ = told(Row("totals", "shoes", "4", "hash"), parts_of_key=RIDES, manifest=TEMPLATE)

    assert sentence.endswith('with fields by field = "{window}"')


def test_a_key_of_the_wrong_type_is_called_what_it_is():
    row = Row(f"counts:{CAMPAIGN}", "", "a key of type string where a hash belongs", NO_RESULT)
    sentence, _ = told(row, manifest=TEMPLATE)

    assert f"{row.key!r} (a key of type string where a hash belongs), but the manifest expects hashes" in sentence
    assert "no result" not in sentence
    assert "no counts" not in sentence


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
        assert "the results are named" in told(cell(key="shoes"), manifest=replace(MANIFEST, results=results))[0]


def test_counts_in_our_own_schema_are_named_where_the_manifest_says_another_one():
    sentence, lines = told(cell()._replace(kind=ELSEWHERE), manifest=TEMPLATE)

    assert lines == ('results = "redis:compact"',)
    assert f"the job wrote a hash named by the campaign, {CAMPAIGN!r} with fields such as '{START}'" in sentence
