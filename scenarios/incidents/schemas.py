"""What each subtask writes. Whatever is graded is a name, a line of a document, or a word of a closed vocabulary."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from bench.scenario import Output

# No word is longer than 15 characters: a longer one of the reference that stands in a prompt would pass for a leak.
Cause = Literal[
    "memory_limit",
    "cpu_limit",
    "disk_full",
    "pool_exhausted",
    "strict_probe",
    "bad_image",
    "bad_config",
    "cert_expired",
    "dns_record",
    "wrong_password",
]
Metric = Literal[
    "error_pct", "memory_pct", "throttled_pct", "disk_pct", "pool_pct", "restarts", "requests_s"
]  # fmt: skip
Action = Literal[
    "set_memory",
    "set_cpu",
    "grow_disk",
    "set_pool",
    "set_probe",
    "scale_out",
    "rollback_image",
    "revert_config",
    "renew_cert",
    "restore_dns",
    "reset_password",
    "restart",
]
Severity = Literal["minor", "major", "critical"]
NUMBERED = frozenset({"set_memory", "set_cpu", "grow_disk", "set_pool", "set_probe", "scale_out"})
"""The actions whose value is a number."""


class LogFinding(Output):
    evidence: str = Field(description="one line of app.log, copied")
    service: str = Field(description="the service at fault")


class MetricFinding(Output):
    row: str = Field(description="one row of metrics.txt, copied")
    service: str = Field(description="the service at fault")
    metric: Metric = Field(description="the one that shows what is wrong with it")


class ChangeFinding(Output):
    event: str = Field(description="one line of events.txt, copied")
    service: str = Field(description="the service at fault")
    change: str = Field(description="the change that began it, as c1; none, if no change did")


class RootCause(Output):
    because: str = Field(description="one short sentence")
    cause: Cause
    service: str = Field(description="the service at fault")


class Remediation(Output):
    model_config = ConfigDict(coerce_numbers_to_str=True)  # a model may well write the number without quotes

    action: Action
    service: str = Field(description="the service that it is done to")
    source: str = Field(
        description="the name under which cluster.txt shows the value, as memory_mib_next; none, if it does not"
    )
    value: str = Field(description="the number, version or key that the action takes; none, if it takes none")


class Report(Output):
    service: str = Field(description="the service that is repaired")
    severity: Severity
    summary: str = Field(description="one sentence")
