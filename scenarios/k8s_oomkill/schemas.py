"""What each subtask writes. Whatever is graded is a closed vocabulary; texts are for people."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from bench.scenario import Output

Source = Literal["app.log", "cluster.log", "metrics.txt", "deploys.txt"]
Event = Literal[
    "config_change",
    "traffic_spike",
    "deployment",
    "cache_full",
    "cpu_contention",
    "bulk_load",
    "heap_growth",
    "gc_pause",
    "pool_exhausted",
    "latency_breach",
    "oom_kill",
]
Component = Literal["payment-svc", "ledger-svc", "report-gen", "postgres", "redis", "node-7"]
Trigger = Literal["config_change", "traffic_spike", "deployment", "cache_full", "cpu_contention"]
Mechanism = Literal[
    "connection_leak",
    "cache_growth",
    "cpu_starvation",
    "retry_storm",
    "unbounded_batch_in_memory",
    "pool_too_small",
    "limit_too_low",
]
Confidence = Annotated[float, Field(ge=0, le=1)]


class Signal(Output):
    model_config = ConfigDict(coerce_numbers_to_str=True)  # a model may well write the value 84 without quotes

    time: str = Field(description="copied from the source, HH:MM or HH:MM:SS")
    source: Source
    what: str = Field(description="what happened, at most 10 words")
    value: str = Field(description="the figure or name that shows it")


class LogTriage(Output):
    namespace: str
    deployment: str = Field(description="the deployment whose pod was killed")
    version: str = Field(description="the version that ran when it was killed")
    previous_version: str = Field(description="the one that ran before that")
    signals: list[Signal] = Field(description="4 to 6, by time")


class Anomaly(Output):
    anomaly: Event
    type: Literal["change", "resource", "latency", "crash", "background"]
    severity: Literal["low", "medium", "high", "critical"]
    confidence: Confidence


class AnomalyClassification(Output):
    anomalies: list[Anomaly]


class RootCauseAnalysis(Output):
    component: Component = Field(description="where the cause lies")
    namespace: str
    version: str = Field(description="the version at fault")
    previous_version: str
    trigger: Trigger
    mechanism: Mechanism = Field(description="how the trigger led to the kill")
    causal_chain: list[Event] = Field(description="at least 3 steps, causes before effects, each step at most once")
    summary: str = Field(description="one sentence")
    remediation_needed: bool
    confidence: Confidence


class RemediationPlan(Output):
    commands: list[str] = Field(description="kubectl commands, in order")
    rationale: str = Field(description="one sentence")


class IncidentReport(Output):
    title: str
    severity: Literal["low", "medium", "high", "critical"]
    component: Component
    trigger: Trigger
    summary: str = Field(description="what happened, one or two sentences")
    remediation: str = Field(description="what the plan does, one sentence")
