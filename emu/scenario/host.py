"""What a host is: the path a work request takes to its NIC, and the NIC's delays and transport limits."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from emu.scenario.field import Flag, Model, Time, choice, refuse, whole


class Nic(Model):
    """The NIC's legs (docs/timing.md) and its reliable-connection transport's limits."""

    not_yet: ClassVar[tuple[str, ...]] = ("ooo_placement", "message_rate", "read_depth")

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

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if self.ack_every_packets > self.window_packets:
            raise refuse(
                f"{self.ack_every_packets}: at most window_packets, {self.window_packets}, or the window would fill up",
                "ack_every_packets",
            )
        return self


class Host(Model):
    """`path`: how a work request reaches the NIC; `none`: frames start there."""

    not_yet: ClassVar[tuple[str, ...]] = ("pcie", "gpu", "cpu")

    path: Annotated[Literal["none"], *choice("none", later=("ibgda", "cpu_proxy", "cpu_sync"))] = "none"
    gpu_direct: Flag = True
    nic: Nic
