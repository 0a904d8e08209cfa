"""AETH syndromes: what an acknowledgement says (IBTA vol. 1, 9.7.5.2)."""

from emu.transport.wc import WcStatus

ACK_NO_CREDIT_INFORMATION = 0x1F
NAK_PSN_SEQUENCE_ERROR = 0x60
NAK_INVALID_REQUEST = 0x61
NAK_REMOTE_ACCESS_ERROR = 0x62
NAK_REMOTE_OPERATIONAL_ERROR = 0x63

_STATUS = {
    NAK_INVALID_REQUEST: WcStatus.REM_INV_REQ_ERR,
    NAK_REMOTE_ACCESS_ERROR: WcStatus.REM_ACCESS_ERR,
    NAK_REMOTE_OPERATIONAL_ERROR: WcStatus.REM_OP_ERR,
}


def is_ack(syndrome: int) -> bool:
    """Bits 7:5 are 000."""
    return syndrome >> 5 == 0


def is_nak(syndrome: int) -> bool:
    """Bits 7:5 are 011."""
    return syndrome >> 5 == 3


def nak_status(syndrome: int) -> WcStatus:
    """The completion status that a NAK which ends the connection gives."""
    return _STATUS.get(syndrome, WcStatus.REM_OP_ERR)
