"""Which of Scapy's layers carry ours: UDP port 4791, EtherType 0x8915 (RoCEv1) and 0x88B5 (native frames)."""

from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import bind_bottom_up, bind_layers

from traffic.layers.bth import BTH
from traffic.layers.infiniband import GRH, LNH_GLOBAL, LNH_LOCAL, LRH, NEXT_HEADER_BTH

ROCE_UDP_PORT = 4791
ETHERTYPE_ROCE_V1 = 0x8915
ETHERTYPE_NATIVE = 0x88B5  # IEEE 802's first one for local experiments


def bind() -> None:
    """Tell Scapy; done once, when `traffic.layers` is imported."""
    bind_bottom_up(UDP, BTH, sport=ROCE_UDP_PORT)
    bind_layers(UDP, BTH, dport=ROCE_UDP_PORT)
    for ethernet in (Ether, Dot1Q):
        bind_layers(ethernet, GRH, type=ETHERTYPE_ROCE_V1)
        bind_layers(ethernet, LRH, type=ETHERTYPE_NATIVE)
    bind_layers(LRH, BTH, lnh=LNH_LOCAL)
    bind_layers(LRH, GRH, lnh=LNH_GLOBAL)
    bind_layers(GRH, BTH, nexthdr=NEXT_HEADER_BTH)
