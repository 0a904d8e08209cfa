"""Parameters of each kind of traffic, by kind; the workloads that read them are in `traffic.workloads`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from emu.scenario.field import MessageSize, Model, Name, Time, choice, kinds, refuse, show, whole

Count = Annotated[int, *whole(1, 10**9)]
QueuePairs = Annotated[int, *whole(1, 65_536)]
Depth = Annotated[int, *whole(1, 32_768, "mlx5's longest send queue")]
Op = Annotated[Literal["write"], *choice("write", later=("read", "send", "write_imm", "fetch_add", "cmp_swp"))]


def _check_pair(pair: Any) -> Any:
    if isinstance(pair, str) or not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise refuse(f"{show(pair)} is no pair of hosts: write [h0, h1]")
    if pair[0] == pair[1]:
        raise refuse(f"{show(pair)}: a pair is two different hosts")
    return pair


def _check_pairs(pairs: Any) -> Any:
    if isinstance(pairs, str) or not isinstance(pairs, (list, tuple)) or not pairs:
        raise refuse(f"{show(pairs)} is no list of pairs: write [[h0, h1]]")
    return pairs


Pair = Annotated[tuple[Name, Name], BeforeValidator(_check_pair)]


class Write(Model):
    """RDMA WRITEs from the first to the second host of each pair: `count` messages on each of `qps` queue pairs."""

    kind: Literal["write"]
    pairs: Annotated[tuple[Pair, ...], BeforeValidator(_check_pairs)]
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    qps: QueuePairs = 1
    depth: Depth = 1  # messages kept outstanding on each queue pair
    start_ps: Time = Field(default=0, alias="start")


class AllToAll(Model):
    """Every host writes `count` messages of `size` to every other one, on each of `qps` queue pairs."""

    kind: Literal["all_to_all"]
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    qps: QueuePairs = 1
    start_ps: Time = Field(default=0, alias="start")


TRAFFIC: dict[str, type[Write] | type[AllToAll]] = {"write": Write, "all_to_all": AllToAll}
LATER_TRAFFIC = ("incast", "permutation", "poisson", "victim", "pause_storm")

Traffic = Annotated[Write | AllToAll, Field(discriminator="kind"), kinds(list(TRAFFIC), LATER_TRAFFIC)]
