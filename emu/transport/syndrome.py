"""AETH syndromes: what an acknowledgement says (IBTA vol. 1, 9.7.5.2)."""

from bisect import bisect_right

from emu.transport.wc import WcStatus
from emu.units import US

ACK_NO_CREDIT_INFORMATION = 0x1F
RNR_NAK = 0x20  # with the timer code in the low five bits
NAK_PSN_SEQUENCE_ERROR = 0x60
NAK_INVALID_REQUEST = 0x61
NAK_REMOTE_ACCESS_ERROR = 0x62
NAK_REMOTE_OPERATIONAL_ERROR = 0x63
CODE_MASK = 0x1F

_STATUS = {
    NAK_INVALID_REQUEST: WcStatus.REM_INV_REQ_ERR,
    NAK_REMOTE_ACCESS_ERROR: WcStatus.REM_ACCESS_ERR,
    NAK_REMOTE_OPERATIONAL_ERROR: WcStatus.REM_OP_ERR,
}
# IBTA vol. 1, table 45 (`enum ibv_rnr_timeout`), in units of 10 us.
_RNR_10US = (
    *(65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
    *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152),
)
RNR_TIMER_PS = tuple(tens * 10 * US for tens in _RNR_10US)
"""How long each code of an RNR NAK asks to wait, in picoseconds."""

# IBTA vol. 1, table 44: receives that each credit code grants; code 31 grants no number at all.
CREDITS = (
    *(0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
    *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768),
)


def is_ack(syndrome: int) -> bool:
    """Bits 7:5 are 000."""
    return syndrome >> 5 == 0


def is_rnr(syndrome: int) -> bool:
    """Bits 7:5 are 001."""
    return syndrome >> 5 == 1


def is_nak(syndrome: int) -> bool:
    """Bits 7:5 are 011."""
    return syndrome >> 5 == 3


def nak_status(syndrome: int) -> WcStatus:
    """The completion status that a NAK which ends the connection gives."""
    return _STATUS.get(syndrome, WcStatus.REM_OP_ERR)


def credit_code(receives: int) -> int:
    """The largest code that grants no more than so many receives."""
    return bisect_right(CREDITS, receives) - 1
