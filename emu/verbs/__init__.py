"""What workloads are written against, in libibverbs' words.

Posting is instant; everything else takes model time. Connections are reliable (RC) or not (UC), datagrams are UD.
"""

from emu.transport.memory import Access, MemoryRegion
from emu.transport.wc import WcFlags, WcOpcode, WcStatus
from emu.transport.work import SendFlags, WROpcode
from emu.verbs.address import AH
from emu.verbs.cq import CQ, WC
from emu.verbs.device import PD, Context
from emu.verbs.qp import QP
from emu.verbs.srq import SRQ
from emu.verbs.state import MOVES, QPAttr, QPState, QPType
from emu.verbs.wr import SGE, RecvWR, SendWR

MR = MemoryRegion

__all__ = [
    "AH",
    "CQ",
    "MOVES",
    "MR",
    "PD",
    "QP",
    "SGE",
    "SRQ",
    "WC",
    "Access",
    "Context",
    "QPAttr",
    "QPState",
    "QPType",
    "RecvWR",
    "SendFlags",
    "SendWR",
    "WROpcode",
    "WcFlags",
    "WcOpcode",
    "WcStatus",
]
