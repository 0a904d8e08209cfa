"""What a host is: the path a work request takes to its NIC, and the NIC's delays and transport limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from emu.scenario.field import Flag, Model, Time, choice, refuse, whole
from emu.scenario.host_path import PATHS, Cpu, Gpu, MessageRate, Pcie, Queues

PATH_SECTIONS = ("pcie", "gpu", "cpu", "queues")
FRONT_END_KEYS = ("message_rate", "qp_message_rate", "context_cache")
"""Of a NIC's keys, those that only act where work requests come to it by PCIe."""


class Nic(Model):
    """The NIC's legs (docs/timing.md) and its reliable-connection transport's limits."""

    not_yet: ClassVar[tuple[str, ...]] = ("ooo_placement", "read_depth")

    post_ps: Time = Field(alias="post")  # posting of the work request to first bit out
    receive_ps: Time = Field(alias="receive")  # last bit in to the frame understood
    ack_turnaround_ps: Time = Field(alias="ack_turnaround")  # frame understood to its ACK ready to leave
    delivery_ps: Time = Field(alias="delivery")  # frame understood to its data visible in memory
    cqe_ps: Time = Field(alias="cqe")  # ACK understood to the CQE visible to the requester
    window_packets: Annotated[int, *whole(1, 2**23 - 1, "less than half of the 24-bit PSN space")]
    ack_every_packets: Annotated[int, *whole(1, 2**23 - 1, "less than half of the 24-bit PSN space")]
    ack_timeout_code: Annotated[int, *whole(1, 31, "4.096 us x 2^code; 0 would wait for ever")]
    retry_cnt: Annotated[int, *whole(0, 7, "a 3-bit field")]
    loss_recovery: Annotated[Literal["go_back_n", "selective_repeat"], *choice("go_back_n", "selective_repeat")]
    cm_timeout_code: Annotated[int, *whole(0, 31, "4.096 us x 2^code")]
    cm_retries: Annotated[int, *whole(0, 15, "a 4-bit field")]
    # Of the front end, hence only with a path to it:
    message_rate: MessageRate | None = None  # of all queue pairs together
    qp_message_rate: MessageRate | None = None  # of one
    context_cache: Annotated[int, *whole(1, 2**24)] | None = None  # queue pairs whose context the NIC keeps

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if self.ack_every_packets > self.window_packets:
            raise refuse(
                f"{self.ack_every_packets}: at most window_packets, {self.window_packets}, or the window would fill up",
                "ack_every_packets",
            )
        return self


def _or_wire(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"enum": ["memory", "veth"]})


class Host(Model):
    """`path`: how a work request reaches the NIC; `none`: frames start there, and the rest below is not to be had."""

    path: Annotated[Literal["none", "ibgda", "cpu_proxy", "cpu_sync"], *choice("none", *PATHS)] = "none"
    gpu_direct: Flag = True
    nic: Nic
    pcie: Pcie | None = Field(None, json_schema_extra=_or_wire)  # or its wire alone
    gpu: Gpu | None = None
    cpu: Cpu | None = None
    queues: Queues | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_path(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("path", "none") == "none":
            nic = given.get("nic")
            places: list[tuple[str, ...]] = [(key,) for key in PATH_SECTIONS if given.get(key) is not None]
            places += [("gpu_direct",)] if given.get("gpu_direct") is False else []
            places += [("nic", key) for key in FRONT_END_KEYS if isinstance(nic, Mapping) and nic.get(key) is not None]
            for place in places:
                raise refuse(f"acts on the way to the NIC, and path is none; set path to {', '.join(PATHS)}", *place)
        return given

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if self.path != "none":
            places: list[tuple[str, ...]] = [(key,) for key in PATH_SECTIONS if getattr(self, key) is None]
            places += [("nic", key) for key in FRONT_END_KEYS if getattr(self.nic, key) is None]
            for place in places:
                raise refuse("is empty, and path needs it; leave it out to have the profile's", *place)
        return self
