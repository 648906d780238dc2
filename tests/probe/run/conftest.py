"""The PostgreSQL server of the witnesses' tests, and probes whose runs several tests read."""

from __future__ import annotations

import pytest
from till import MadeProbe, desk, probed, till

from tests.probe.run.witness.conftest import server

__all__ = ["server"]
DESK = ("lost", "unacknowledged", "twice")


@pytest.fixture(scope="session")
def asks_again(tmp_path_factory: pytest.TempPathFactory) -> MadeProbe:
    """The probe of an agent that makes a charge again whose answer was lost, without a key."""
    folder = tmp_path_factory.mktemp("asks_again")
    subject = till(folder, "again")
    return MadeProbe(folder, subject, probed(folder, subject, "charge#1.lost"))


@pytest.fixture(scope="session")
def begins_anew(tmp_path_factory: pytest.TempPathFactory) -> MadeProbe:
    """The probe of an agent that begins anew after it was killed."""
    folder = tmp_path_factory.mktemp("begins_anew")
    subject = till(folder, "")
    return MadeProbe(folder, subject, probed(folder, subject, "charge#1.unack"))


@pytest.fixture(scope="session")
def over_http(tmp_path_factory: pytest.TempPathFactory) -> MadeProbe:
    """The probe of an agent with a service and a model, by two workers."""
    folder = tmp_path_factory.mktemp("over_http")
    subject = desk(folder)
    only = (*(f"shop.POST /payments#1.{point}" for point in DESK), "#1.model_lost")
    return MadeProbe(folder, subject, probed(folder, subject, *only, workers=2))
