"""A resolver gives each name one address, and no bytes that are sent to it break it."""

from __future__ import annotations

import struct
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.probe.run.box.names import MAX_NAMES, NameTable, has_failed

NAMES = st.lists(st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=20), min_size=1, max_size=4)


def question(name: str, kind: int = 1, flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 4711, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def address_in(answer: bytes) -> str:
    number, flags, questions, answers = struct.unpack_from("!4H", answer)
    assert (number, flags & 0x800F, questions, answers) == (4711, 0x8000, 1, 1)
    return str(ip_address(answer[-4:]))


@given(st.sets(NAMES.map(".".join), min_size=1, max_size=50))
def test_each_name_has_an_address_of_its_own_which_tells_the_name(names: set[str]) -> None:
    table = NameTable()
    addresses = {name: address_in(table.answer(question(name))) for name in names}
    assert len(set(addresses.values())) == len(names)
    for name, address in addresses.items():
        assert table.name_of(address) == name and ip_address(address) in ip_network("198.18.0.0/15")


@given(NAMES.map(".".join))
def test_a_name_has_the_same_address_in_each_run(name: str) -> None:
    assert NameTable().address_of(name) == NameTable().address_of(name)


def test_names_are_of_any_case_and_localhost_is_this_machine() -> None:
    table = NameTable()
    assert table.address_of("API.Example.com.") == table.address_of("api.example.com")
    assert table.address_of("localhost") == table.address_of("db.localhost") == "127.0.0.1"
    assert table.name_of("192.0.2.1") == ""


def test_two_names_at_one_place_in_the_block_get_two_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.probe.run.box.names.ADDRESS_COUNT", 5)
    table = NameTable()
    addresses = [table.address_of(f"host{number}") for number in range(3)]
    assert len(set(addresses)) == 3 and [table.name_of(each) for each in addresses] == ["host0", "host1", "host2"]


def test_once_there_are_too_many_names_another_is_refused_and_those_that_are_known_are_answered() -> None:
    table = NameTable()
    for number in range(MAX_NAMES):
        table.address_of(f"host{number}")
    refused = table.answer(question("another.example"))
    assert struct.unpack_from("!4H", refused) == (4711, 0x8182, 1, 0) and has_failed(refused)
    known = table.answer(question("HOST7"))
    assert address_in(known) == table.address_of("host7") and not has_failed(known)


@pytest.mark.parametrize("kind", [28, 15, 16, 33, 65, 12])
def test_other_kinds_of_records_are_answered_with_none_and_without_an_error(kind: int) -> None:
    answer = NameTable().answer(question("api.example.com", kind))
    assert struct.unpack_from("!4H", answer, 2)[1:3] == (1, 0) and struct.unpack_from("!H", answer, 2)[0] & 15 == 0


@pytest.mark.parametrize("bad", [question("a b"), question("x" * 60 + "." + "y" * 60 + ".z" * 80), question("a")[:-2]])
def test_what_is_no_name_is_answered_as_malformed(bad: bytes) -> None:
    assert struct.unpack_from("!H", NameTable().answer(bad), 2)[0] & 15 == 1


@given(st.one_of(st.binary(max_size=600), st.binary(max_size=60).map(lambda end: question("a.example")[:14] + end)))
def test_no_bytes_break_the_resolver_and_an_answer_is_never_answered(asked: bytes) -> None:
    table = NameTable()
    answer = table.answer(asked)
    assert not answer or answer[:2] == asked[:2]
    assert not table.answer(answer)
