"""How a requester behaves: window, timeouts, retries, read depth."""

from __future__ import annotations

from dataclasses import dataclass

from emu.errors import VerbsError

ACK_TIMEOUT_UNIT_PS = 4_096_000  # IBTA vol. 1, 9.7.6.1.3: the timeout is 4.096 us x 2^code


def check_limits(*limits: tuple[str, int, int]) -> None:
    """Raises VerbsError where one of the values, by its name, is not a whole number from 0 to its limit."""
    for name, value, highest in limits:
        if not isinstance(value, int) or not 0 <= value <= highest:
            raise VerbsError(f"{name} {value}: 0 to {highest}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequesterConfig:
    """How a requester behaves. A timeout code of 0 never fires. Raises VerbsError for what no queue pair can be."""

    path_mtu_bytes: int
    window_packets: int
    ack_every_packets: int
    ack_timeout_code: int
    retry_cnt: int
    rnr_retry: int = 7
    max_rd_atomic: int = 16  # READs and atomics outstanding
    selective: bool = False  # whether only what is missing is sent again
    end_to_end_credits: bool = False  # whether to heed the receives that acknowledgements grant

    def __post_init__(self) -> None:
        check_limits(
            ("ack_timeout_code", self.ack_timeout_code, 31),
            ("retry_cnt", self.retry_cnt, 7),
            ("rnr_retry", self.rnr_retry, 7),
            ("max_rd_atomic", self.max_rd_atomic, 255),
        )

    @property
    def ack_timeout_ps(self) -> int:
        """How long to wait for an acknowledgement, in picoseconds; 0: for ever."""
        return ACK_TIMEOUT_UNIT_PS << self.ack_timeout_code if self.ack_timeout_code else 0
