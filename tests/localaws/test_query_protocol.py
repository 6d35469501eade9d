"""The query protocol: forms become JSON, JSON becomes XML."""

from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from outboxd.localaws.http1 import Answer
from outboxd.localaws.query.answering import dressed, result
from outboxd.localaws.query.form import parsed


@pytest.mark.parametrize(
    ("pairs", "content"),
    [
        ({"Message": "a b&c=ü"}, {"Message": "a b&c=ü"}),
        ({"Message": ""}, {"Message": ""}),
        ({"Names.member.2": "b", "Names.member.10": "c", "Names.member.1": "a"},
         {"Names": ["a", "b", "c"]}),
        ({"E.member.1.Id": "1", "E.member.1.Text": "x", "E.member.2.Id": "2"},
         {"E": [{"Id": "1", "Text": "x"}, {"Id": "2"}]}),
        ({"Attributes.entry.1.key": "a", "Attributes.entry.1.value": "b"},
         {"Attributes": {"a": "b"}}),
        ({"M.entry.1.Name": "a.b", "M.entry.1.Value.DataType": "String"},
         {"M": {"a.b": {"DataType": "String"}}}),
        ({"PublishBatchRequestEntries": ""}, {"PublishBatchRequestEntries": []}),
    ],
)  # fmt: skip
def test_a_form_becomes_json(pairs: dict[str, str], content: Any) -> None:
    form = parsed(urlencode({"Action": "A", "Version": "1", **pairs}).encode())

    assert form == ("A", "1", content)


@pytest.mark.parametrize("body", [b"\xff", b"Action.x=1", b"a=%ff"])
def test_what_is_no_form_is_none(body: bytes) -> None:
    assert parsed(body) is None


def test_a_result_becomes_xml() -> None:
    content = {"Text": "<&>\r", "Yes": True, "List": [{"A": "1"}, {"A": "2"}], "None": []}
    answer = result({**content, "Attributes": {"key <": "value"}})

    told = dressed(answer, "Act", "urn:x")

    xml = ElementTree.fromstring(told.body)
    found = xml.find("{*}ActResult")
    assert found is not None
    assert [child.tag.removeprefix("{urn:x}") for child in found] == [*content, "Attributes"]
    assert found.findtext("{*}Text") == "<&>\r"
    assert found.findtext("{*}Yes") == "true"
    assert [each.text for each in found.iterfind("{*}List/{*}member/{*}A")] == ["1", "2"]
    assert found.findtext("{*}Attributes/{*}entry/{*}key") == "key <"
    assert (
        xml.findtext("{*}ResponseMetadata/{*}RequestId") == dict(told.headers)["x-amzn-requestid"]
    )


def test_an_action_without_a_result_has_no_element_for_it() -> None:
    xml = ElementTree.fromstring(dressed(result(None), "Act", "urn:x").body)

    assert [child.tag for child in xml] == ["{urn:x}ResponseMetadata"]


def test_what_is_xml_already_stays() -> None:
    answer = Answer(400, "text/xml", b"<a/>")

    assert dressed(answer, "Act", "urn:x") is answer
