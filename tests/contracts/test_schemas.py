"""The contracts: every version readable by every other, golden bytes, pinned ids, plain words."""

import dataclasses
import json
from collections import defaultdict
from typing import Any

import pytest
from fastavro.schema import to_parsing_canonical_form

from domain.commands import COMMANDS
from domain.facts import FACTS
from schemas.author import GLOSSARY
from schemas.compatibility import incompatibilities
from schemas.registry import FINGERPRINT_BYTES, IDS, Contract, registry
from schemas.shapes import element, field_names, hints_of, optional, schema_of
from tests.examples import RECORDS, example
from tests.golden import body_of, golden

CONTRACTS = sorted(registry().by_type.values(), key=lambda contract: contract.type)
NEWEST = sorted(registry().newest.values(), key=lambda contract: contract.type)


def _said(contract: Contract) -> Any:
    return json.loads(contract.path.read_text())


def _by_type(contract: Contract) -> str:
    return contract.type


def test_no_event_has_the_name_of_a_command() -> None:
    assert not FACTS.keys() & COMMANDS.keys()


def test_all_versions_of_a_contract_can_read_each_other() -> None:
    versions: defaultdict[str, dict[int, Any]] = defaultdict(dict)
    for contract in CONTRACTS:
        versions[contract.name][contract.version] = _said(contract)
    for name, of_name in versions.items():
        assert sorted(of_name) == list(range(1, len(of_name) + 1)), name
        assert incompatibilities(of_name) == [], name


@pytest.mark.parametrize("contract", NEWEST, ids=_by_type)
def test_the_newest_version_is_that_of_the_code(contract: Contract) -> None:
    glossary = json.loads(GLOSSARY.read_text())
    of_code = schema_of(RECORDS[contract.name], glossary)
    assert to_parsing_canonical_form(_said(contract)) == to_parsing_canonical_form(of_code), (
        "the class has changed: it needs a version of its own"
    )


@pytest.mark.parametrize("contract", CONTRACTS, ids=_by_type)
def test_what_was_once_written_can_be_read(contract: Contract) -> None:
    body = golden().get(contract.type)
    assert body is not None, "run python -m tests.golden"
    thing = registry().decode(contract.type, bytes.fromhex(body))
    assert isinstance(thing, RECORDS[contract.name])


@pytest.mark.parametrize("contract", NEWEST, ids=_by_type)
def test_the_newest_version_writes_the_golden_bytes_and_reads_them_back(
    contract: Contract,
) -> None:
    assert golden()[contract.type] == body_of(contract).hex()
    thing = registry().decode(contract.type, body_of(contract))
    assert thing == example(RECORDS[contract.name])


def test_golden_bytes_are_of_contracts_that_exist() -> None:
    assert golden().keys() == registry().by_type.keys()


def test_ids_are_pinned_positive_and_never_shared() -> None:
    pinned: dict[str, int] = json.loads(IDS.read_text())
    assert pinned.keys() >= registry().by_type.keys()
    assert len(set(pinned.values())) == len(pinned)
    assert min(pinned.values()) > 0


def test_fingerprints_tell_contracts_apart() -> None:
    fingerprints = {contract.fingerprint for contract in CONTRACTS}
    assert {len(fingerprint) for fingerprint in fingerprints} == {FINGERPRINT_BYTES}
    assert len(fingerprints) == len(CONTRACTS)


def _documented(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_documented, schema))
    if not isinstance(schema, dict):
        return True
    if "fields" in schema:
        return bool(schema["doc"]) and all(
            field["doc"] and _documented(field["type"]) for field in schema["fields"]
        )
    return all(_documented(schema.get(part)) for part in ("items", "values"))


@pytest.mark.parametrize("contract", CONTRACTS, ids=_by_type)
def test_every_record_and_field_says_what_it_means(contract: Contract) -> None:
    assert _documented(_said(contract))


def test_the_glossary_holds_sentences_and_no_word_that_nobody_uses() -> None:
    glossary: dict[str, str] = json.loads(GLOSSARY.read_text())
    used = {name for record in RECORDS.values() for name in field_names(record)}
    assert glossary.keys() <= used
    for name, sentence in glossary.items():
        assert sentence[0].isupper(), name
        assert sentence.endswith("."), name
    assert list(glossary) == sorted(glossary)


def test_no_two_records_inside_contracts_share_a_name() -> None:
    seen: dict[str, type[Any]] = {}
    waiting: list[type[Any]] = list(RECORDS.values())
    while waiting:
        record = waiting.pop()
        assert seen.setdefault(record.__name__, record) is record, record
        for annotation in hints_of(record).values():
            inner = optional(annotation) or annotation
            inner = element(inner) or inner
            if dataclasses.is_dataclass(inner) and isinstance(inner, type):
                waiting.append(inner)
