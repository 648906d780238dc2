"""Contracts: which tools a role may call, and how often; what is outside is refused with a code, and nothing happens."""

from __future__ import annotations

import pytest
from little_worlds import world

from bench.common.errors import PackError
from bench.worlds.run.environment import Moment, Quota, Role
from bench.worlds.run.environment.contracts import refuse_contracts

TOOLS = ("read_order", "reserve", "refund", "release", "notify")
CLERK = {"clerk": Role(allows=("read_order", "reserve")), "guest": Role(denies=("refund",))}


@pytest.mark.parametrize(
    ("role", "tool", "code"),
    [
        ("clerk", "reserve", ""),
        ("clerk", "release", "forbidden"),
        ("guest", "reserve", ""),
        ("guest", "refund", "forbidden"),
        ("agent", "refund", ""),
    ],
)
def test_a_role_may_call_what_its_contract_allows_and_does_not_deny(role: str, tool: str, code: str) -> None:
    shop = world(roles=CLERK)
    acted = shop.call(tool, {"order": 1, **({"amount": 40} if tool == "refund" else {})}, who=role)
    assert acted.code == code
    assert (acted.outcome == "refused", shop.journal()[-1].who) == (bool(code), role)


def test_what_a_contract_forbids_changes_nothing_and_stands_in_the_journal() -> None:
    shop = world(roles=CLERK)
    before = shop.digest()
    answer = shop.call("refund", {"order": 1, "amount": 40}, who="guest")
    assert (answer.reason, shop.digest()) == ("the role 'guest' may not call refund", before)
    assert [(entry.name, entry.outcome) for entry in shop.journal()] == [("refund", "refused")]


def test_refused_and_replayed_calls_use_up_no_quota() -> None:
    shop = world(quotas=(Quota(2, "reserve"),))
    codes = [shop.call("reserve", {"order": number}, f"key {min(number, 3)}").code for number in (1, 1, 3)]
    assert codes == ["", "", ""]
    assert shop.call("reserve", {"order": 2}).code == "quota"
    shop.wait(days=2)
    refused = shop.call("reserve", {"order": 2})
    assert (refused.code, refused.again) == ("quota", None)
    assert shop.call("read_order", {"order": 1}).ok


def test_the_throttle_of_a_day_says_when_a_call_is_taken_again_and_then_it_is() -> None:
    shop = world(quotas=(Quota(1, per="day"),))
    shop.wait(minutes=700)
    assert shop.call("read_order", {"order": 1}).ok
    refused = shop.call("read_order", {"order": 1})
    assert (refused.code, refused.again) == ("throttled", Moment(1))
    assert refused.again is not None
    shop.wait_until(refused.again)
    assert shop.call("read_order", {"order": 1}).ok


def test_a_quota_of_a_role_leaves_the_others_alone_and_outlives_a_restore() -> None:
    shop = world(quotas=(Quota(1, role="clerk"),), roles=CLERK)
    assert shop.call("reserve", {"order": 1}, who="clerk").ok
    again = shop.fork()
    for each in (shop, again):
        assert each.call("reserve", {"order": 2}, who="clerk").code == "quota"
        assert each.call("reserve", {"order": 2}).ok


@pytest.mark.parametrize(
    ("roles", "quotas", "words"),
    [
        ({"clerk": Role(allows=("reserv",))}, (), "names 'reserv', which is not a tool; did you mean 'reserve'"),
        ({}, (Quota(1, "refunds"),), "names 'refunds', which is not a tool; did you mean 'refund'"),
        ({"clerk": Role()}, (Quota(1, role="clark"),), "names 'clark', which is not a role; did you mean 'clerk'"),
        ({}, (Quota(-1),), "a quota of -1 calls; give it 0 or more"),
    ],
)
def test_a_contract_that_names_what_is_not_there_is_refused_in_a_line(
    roles: dict[str, Role], quotas: tuple[Quota, ...], words: str
) -> None:
    with pytest.raises(PackError, match=words):
        refuse_contracts(roles, quotas, TOOLS, "pack")
