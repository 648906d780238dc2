"""A payment run: as many equal steps as its variant says, each with one judgment and one payment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pydantic import Field

from bench.run.packs import PackFolder
from bench.scenario import Call, Context, Json, Output, Scenario, Subtask, WrongAnswer
from bench.worlds.run.environment import Environment, Facts, JudgmentState, ProcedureStep, World

from .baseline import baseline
from .grader import grade
from .story import InvoiceCase, account_of, story
from .world import BEGINS, ENDS, KINDS, POLICY, SCHEMA, TOOLS, Account, audit, events, rows

VARIANTS = ("5", "80")
"""How many invoices a run has."""
INSTANCES = 20


class Pay(Output):
    amount: int = Field(ge=0)
    account: Account


def amount_is_less_the_credit(output: Pay, context: Context) -> str | None:
    invoice = json.loads(context.documents["invoice"])
    due = invoice["gross"] - invoice["credit"]
    return None if output.amount == due else f"{invoice['gross']} less the credit of {invoice['credit']} is {due}"


def account_follows_from_the_country(output: Pay, context: Context) -> str | None:
    account = account_of(json.loads(context.documents["invoice"])["country"])
    return None if output.account == account else f"this supplier is paid from {account}"


def right(_: str, documents: Mapping[str, str]) -> Json:
    invoice = json.loads(documents["invoice"])
    return {"amount": invoice["gross"] - invoice["credit"], "account": account_of(invoice["country"])}


def instances(_: PackFolder) -> tuple[str, ...]:
    return tuple(f"run_{number:02}" for number in range(1, INSTANCES + 1))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    invoices = story(instance, int(folder.variant))
    checks = (amount_is_less_the_credit, account_follows_from_the_country)
    subtask = Subtask("pay", folder.prompt("pay"), ("policy.md", "invoice"), Pay, checks=checks)
    first = invoices[0]
    return folder.scenario(
        (subtask,),
        grade=grade,
        baseline=baseline,
        reference={"pay": first.payment},
        wrong=[WrongAnswer(name, why, {"pay": paid}) for name, (why, paid) in slips(first).items()],
        truth=[[invoice.number, *invoice.payment.values()] for invoice in invoices],
        made_by=story,
        environment=_environment(invoices, folder.prompt("work")),
    )


def slips(invoice: InvoiceCase) -> dict[str, tuple[str, dict[str, str | int]]]:
    """Return the wrong payments of an invoice: name -> why it is wrong, and the payment."""
    other = "foreign" if invoice.payment["account"] == "domestic" else "domestic"
    return {
        "gross_paid": ("a credit note is to be set off", {**invoice.payment, "amount": invoice.gross}),
        "other_account": ("the country decides on the account", {**invoice.payment, "account": other}),
        "doubled_amount": ("no more than was invoiced is paid", {**invoice.payment, "amount": 2 * invoice.gross}),
    }


def _environment(invoices: Sequence[InvoiceCase], work: str) -> Environment:
    payments = [{"number": invoice.number, **invoice.payment} for invoice in invoices]
    wrong = {name: partial(_pay_all, [{"number": 1, **paid}, *payments[1:]]) for name, (_, paid) in slips(invoices[0]).items()}
    return Environment(
        schema=SCHEMA,
        rows=rows(invoices),
        tools=TOOLS,
        audit=audit,
        reference=partial(_pay_all, payments),
        wrong={"nothing": partial(_pay_all, []), "pays_twice": partial(_pay_all, [*payments, payments[-1]]), **wrong},
        given=("invoice",),
        right=right,
        states=partial(_states, invoices),
        events=events(invoices),
        kinds=KINDS,
        policy=POLICY,
        begins=BEGINS,
        ends=ENDS,
        procedure=tuple(_steps(invoices)),
        work=work,
    )


def _pay_all(payments: Sequence[Mapping[str, str | int]], world: World) -> None:
    world.next_event()
    for payment in payments:
        world.call("read_invoice", {"number": payment["number"]})
        world.call("pay", payment)


def _states(invoices: Sequence[InvoiceCase], _: Environment) -> list[JudgmentState]:
    shown = ("supplier", "country", "gross", "credit")
    return [JudgmentState("pay", {"invoice": {name: vars(invoice)[name] for name in shown}}) for invoice in invoices]


def _steps(invoices: Sequence[InvoiceCase]) -> Iterator[ProcedureStep]:
    """Yield the steps in sequence. The notice starts the first step."""
    before: tuple[str, ...] = ()
    for invoice in invoices:
        name = f"invoice_{invoice.number:02}"
        yield ProcedureStep(
            name,
            before,
            "" if before else "run_opened",
            reads=partial(_reads, invoice.number),
            judgment="pay",
            effects=partial(_payments, name, invoice.number),
        )
        before = (name,)


def _reads(number: int, _: Facts) -> Mapping[str, Call]:
    return {"invoice": Call("read_invoice", {"number": number})}


def _payments(step: str, number: int, facts: Facts) -> Sequence[Call]:
    paid = facts.decided[step]
    return [Call("pay", {"number": number, "amount": paid["amount"], "account": paid["account"]})]
