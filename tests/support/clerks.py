"""Two architectures for the world `refunds`: one that acts and hopes, one that gives keys and keeps what it did."""

from __future__ import annotations

from typing import Any

from bench.run.trial.workbench import Workbench
from bench.scenario import Task

ORDERS = (1, 2, 3)


async def bare(task: Task, workbench: Workbench) -> None:
    """Reads, decides, acts. What fails it tries no second time, and after a crash it begins anew."""
    for number in ORDERS:
        order = await workbench.world.act("read_order", {"order": number})
        if not order.ok:
            continue
        proposal = await workbench.propose(task.subtask("decide"), documents={"order": order.result})
        if workbench.verify(proposal):
            continue
        workbench.commit(proposal)
        decided = workbench.output(task.subtask("decide"))
        if not decided.refund:  # type: ignore[union-attr]
            continue
        await workbench.world.act("reserve", {"order": number})
        if decided.amount > 100:  # type: ignore[union-attr]
            await workbench.world.ask_person("manager", f"order {number}", {"order": number})
        await workbench.world.act("refund", {"order": number, "amount": decided.amount})  # type: ignore[union-attr]
        await workbench.world.act("release", {"order": number})
        await workbench.world.act("notify", {"order": number, "text": "refunded"})


async def careful(task: Task, workbench: Workbench) -> None:
    """The same, each effect under a key of its own until it is known to have happened, and what is done is kept."""
    for number in ORDERS:
        if number in workbench.world.store.log("settled"):
            continue
        decided = workbench.world.store.get(f"decision {number}")
        if decided is None:
            order = await again(workbench, "read_order", {"order": number}, None)
            proposal = await workbench.propose(task.subtask("decide"), documents={"order": order})
            if workbench.verify(proposal):
                continue
            workbench.commit(proposal)
            decided = workbench.output(task.subtask("decide")).model_dump()  # type: ignore[union-attr]
            workbench.world.store.put(f"decision {number}", decided)
        if decided["refund"]:
            await once(workbench, "reserve", {"order": number})
            if not workbench.world.verdict("refund", {"order": number, "amount": decided["amount"]}).allows:
                await workbench.world.ask_person("manager", f"order {number}", {"order": number}, key=f"ask {number}")
            await once(workbench, "refund", {"order": number, "amount": decided["amount"]})
            await once(workbench, "release", {"order": number})
            await once(workbench, "notify", {"order": number, "text": "refunded"})
        workbench.world.store.append("settled", number)


async def once(workbench: Workbench, tool: str, arguments: dict[str, Any]) -> None:
    key = f"{tool} {arguments['order']}"
    if key not in workbench.world.store.log("done"):
        await again(workbench, tool, arguments, key)
        workbench.world.store.append("done", key)


async def again(workbench: Workbench, tool: str, arguments: dict[str, Any], key: str | None) -> Any:
    """Until an answer comes."""
    while True:
        acted = await workbench.world.act(tool, arguments, key)
        if acted.outcome != "failed":
            return acted.result
        await workbench.world.wait(minutes=5)
