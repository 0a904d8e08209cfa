"""Parameters of each kind of traffic, by kind; the workloads that read them are in `traffic.workloads`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from emu.scenario.field import Duration, MessageSize, Model, Name, Time, kinds
from emu.scenario.pairs import Pair, Pairs, Senders
from emu.scenario.posting import Count, Depth, Op, Priority, QueuePairs, Setup
from emu.scenario.replay import Replay
from emu.scenario.share import Load


class Write(Model):
    """RDMA WRITEs from the first to the second host of each pair: `count` messages on each of `qps` queue pairs."""

    kind: Literal["write"]
    pairs: Pairs
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    setup: Setup = "direct"
    qps: QueuePairs = 1
    depth: Depth = 1  # messages kept outstanding on each queue pair
    start_ps: Time = Field(default=0, alias="start")
    stagger_ps: Time = Field(default=0, alias="stagger")  # the i-th pair starts i times this later
    priority: Priority | None = None  # SL or 802.1p priority of its data; the fabric's unless given


class AllToAll(Model):
    """Every host writes `count` messages of `size` to every other one, on each of `qps` queue pairs."""

    kind: Literal["all_to_all"]
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    setup: Setup = "direct"
    qps: QueuePairs = 1
    start_ps: Time = Field(default=0, alias="start")
    stagger_ps: Time = Field(default=0, alias="stagger")  # the i-th host
    priority: Priority | None = None


class Incast(Model):
    """Many hosts write to one: `senders` of them, the first ones in order, or those named."""

    kind: Literal["incast"]
    senders: Senders
    receiver: Name
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    setup: Setup = "direct"
    qps: QueuePairs = 1
    depth: Depth = 1
    start_ps: Time = Field(default=0, alias="start")
    stagger_ps: Time = Field(default=0, alias="stagger")  # the i-th sender
    priority: Priority | None = None

    def sender_names(self, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """The senders among the fabric's hosts."""
        if isinstance(self.senders, tuple):
            return self.senders
        return tuple(host for host in hosts if host != self.receiver)[: self.senders]


class Permutation(Model):
    """Every host writes to one other and is written to by one other, drawn from the seed."""

    kind: Literal["permutation"]
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    setup: Setup = "direct"
    qps: QueuePairs = 1
    depth: Depth = 1
    start_ps: Time = Field(default=0, alias="start")
    stagger_ps: Time = Field(default=0, alias="stagger")  # the i-th host
    priority: Priority | None = None


class Poisson(Model):
    """Each pair's first host posts at random times, whatever is outstanding, `load` of its link's rate on average."""

    kind: Literal["poisson"]
    pairs: Pairs
    size_bytes: MessageSize = Field(alias="size")
    load: Load  # in wire bytes, of a pair's queue pairs together
    count: Count = 1
    op: Op = "write"
    setup: Setup = "direct"
    qps: QueuePairs = 1
    start_ps: Time = Field(default=0, alias="start")
    priority: Priority | None = None


class Victim(Model):
    """One flow that shares with an incast of the scenario no host and no queue's end, only a link that is held up."""

    kind: Literal["victim"]
    pair: Pair | None = None  # chosen by emu/scenario/victim.py unless given
    size_bytes: MessageSize = Field(alias="size")
    count: Count = 1
    op: Op = "write"
    setup: Setup = "direct"
    depth: Depth = 1
    start_ps: Time = Field(default=0, alias="start")
    priority: Priority | None = None


class PauseStorm(Model):
    """A broken NIC pauses its switch on one priority for `duration`; it sends no messages, and holds up no end."""

    kind: Literal["pause_storm"]
    host: Name
    duration_ps: Duration = Field(alias="duration")
    start_ps: Time = Field(default=0, alias="start")
    priority: Priority | None = None


AnyKind = Write | AllToAll | Incast | Permutation | Poisson | Victim | PauseStorm | Replay
TRAFFIC: dict[str, type[AnyKind]] = {
    "write": Write,
    "all_to_all": AllToAll,
    "incast": Incast,
    "permutation": Permutation,
    "poisson": Poisson,
    "victim": Victim,
    "pause_storm": PauseStorm,
    "replay": Replay,
}
LATER_TRAFFIC = ()

Traffic = Annotated[AnyKind, Field(discriminator="kind"), kinds(list(TRAFFIC), LATER_TRAFFIC)]
