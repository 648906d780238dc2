"""The facts of one payment run: its invoices, made from the run's name alone."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.seeding import seed_of

HOME = "Norway"
COUNTRIES = (HOME, HOME, "Spain", "Poland", "Chile", "Japan")
SUPPLIERS = ("Anker", "Bolt", "Crane", "Davit", "Eider", "Fender", "Gantry", "Hawser", "Island", "Jetty", "Keel", "Lantern")


@dataclass(frozen=True)
class InvoiceCase:
    number: int
    supplier: str
    country: str
    gross: int
    credit: int

    @property
    def payment(self) -> dict[str, str | int]:
        """Return the right payment in the form of the judgment's output."""
        return {"amount": self.gross - self.credit, "account": account_of(self.country)}


def account_of(country: str) -> str:
    """Return the account from which suppliers in this country are paid."""
    return "domestic" if country == HOME else "foreign"


def story(run: str, length: int) -> tuple[InvoiceCase, ...]:
    """Return the invoices of a run. A shorter run has the first invoices of a longer run."""
    return tuple(_invoice(run, number) for number in range(1, length + 1))


def _invoice(run: str, number: int) -> InvoiceCase:
    """Return an invoice, drawn independently of the others. Two of three have a credit note, and so has the first."""

    def below(bound: int, what: str) -> int:
        return seed_of("payment_run", run, number, what) % bound

    gross = 100 + below(4_900, "gross")
    credit = 1 + below(gross // 2, "credit") if number == 1 or below(3, "has a credit") else 0
    name, country = SUPPLIERS[below(len(SUPPLIERS), "supplier")], COUNTRIES[below(len(COUNTRIES), "country")]
    return InvoiceCase(number, name, country, gross, credit)
