"""`streamgauge workload`: a new declaration works at once, and a wrong one costs one sentence."""

from __future__ import annotations

import json

import fastavro
import pytest

from harness.model import Exit
from workloads.shipped import WORKLOADS


def test_a_new_workload_can_be_checked_at_once(call_here, tmp_path):
    code, said, _ = call_here("workload", "new", "payments")
    assert code == Exit.PASS
    assert said.splitlines()[-1] == "`streamgauge workload check payments` shows its events and expected rows"

    code, told, _ = call_here("workload", "check", "payments")

    lines = told.splitlines()
    assert code == Exit.PASS
    assert lines[0].startswith("payments: orders, buyers and revenue")
    assert max(map(len, lines)) <= 80
    assert "country  opens" in told
    assert "not judged" in told


def test_all_that_is_shown_is_in_the_object_too(call_here):
    call_here("workload", "new", "x")

    code, told, _ = call_here("workload", "check", "x", "--json")

    found = json.loads(told)
    assert code == Exit.PASS
    assert (found["command"], found["id"], found["events"]) == ("workload check", "x", 1010)
    assert sum(row["orders"] for row in found["rows"]) == found["placed"] == 1010
    assert len(found["rows"]) > 3  # as many as a person is shown
    assert found["tables"] == ["shops, 200 rows in Redis: shop:shop-1 -> " + found["tables"][0].split()[-1]]
    assert json.loads(found["examples"][0])["country"] in ("DE", "FR", "IT")
    assert "A mistake in the SQL itself" in found["unjudged"][0]


def test_avro_is_shown_as_what_is_in_it(call_here, tmp_path):
    call_here("workload", "new", "x")
    path = tmp_path / "x" / "workload.toml"
    path.write_text(path.read_text().replace('format = "json"', 'format = "avro"\nregistry_id = 7'))

    code, told, _ = call_here("workload", "check", "x")

    assert code == Exit.PASS
    assert max(map(len, told.splitlines())) <= 80
    assert "avro behind five bytes of schema 7" in " ".join(told.split())
    assert '{"order_id": "' in told

    _, told, _ = call_here("workload", "check", "x", "--json")
    found = json.loads(told)
    assert '"ordered_at": "20' in found["examples"][0], "as it stands in the record: a text, and no number"
    assert "ordered_at" in str(fastavro.parse_schema(json.loads(found["schema"])))


def test_what_is_there_is_not_written_over(call_here, tmp_path):
    call_here("workload", "new", "x")
    (tmp_path / "x" / "workload.toml").write_text("mine")

    code, _, said = call_here("workload", "new", "x")

    assert code == Exit.USAGE
    assert "is there already" in said
    assert (tmp_path / "x" / "workload.toml").read_text() == "mine"


def test_a_file_in_the_place_of_the_folder_is_told_so(call_here, tmp_path):
    (tmp_path / "x").write_text("mine")

    code, _, said = call_here("workload", "new", "x")

    assert code == Exit.USAGE
    assert "x is a file; give a folder" in said


@pytest.mark.parametrize("name", ["ad-impressions", "With Space", "."])
def test_a_folder_that_no_id_may_be_called_like_gets_another_id(call_here, name, tmp_path):
    assert call_here("workload", "new", name)[0] == Exit.PASS
    assert call_here("workload", "check", name)[0] == Exit.PASS


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ("count(*) AS orders", "avg(amount) AS orders", "[oracle] fold gives orders as DOUBLE"),
        ("FROM events", "FROM read_csv('/etc/passwd')", "reaches for a file or the network"),
        ('kind = "zipf"', 'kind = "zipff"', "event.fields.shop.kind = 'zipff'"),
        ('"NAME"', '"ad_impressions"', "an id of your own"),
        ('"country", "opens"]', '"size", "opens"]\ndomains = { size = ["small"] }', "gives no column size"),
        ("SELECT country, opens,", "SELECT lower(country) AS country, opens,", "country de, which is none of the 3"),
    ],
)
def test_a_mistake_is_one_sentence_and_a_usage_error(call_here, tmp_path, before, after, answer):
    call_here("workload", "new", "x")
    path = tmp_path / "x" / "workload.toml"
    text = path.read_text().replace('id = "x"', 'id = "NAME"')
    assert before in text
    path.write_text(text.replace(before, after).replace('"NAME"', '"x"'))

    code, told, said = call_here("workload", "check", "x", "--json")

    assert code == Exit.USAGE
    assert answer in json.loads(told)["error"]
    assert "x/workload.toml" in said


def test_the_shipped_ones_are_listed(call_here):
    code, told, _ = call_here("workload", "--json")

    assert code == Exit.PASS
    assert [each["workload"] for each in json.loads(told)["workloads"]] == [*WORKLOADS]
