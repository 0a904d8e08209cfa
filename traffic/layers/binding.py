"""Which of Scapy's layers carry ours: UDP port 4791; EtherTypes 0x8915 (RoCEv1), 0x88B5 and 0x88B6 (native frames and
link control, TLPs included), 0x8808 (MAC control)."""

from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import bind_bottom_up, bind_layers, bind_top_down

from traffic.layers.bth import BTH
from traffic.layers.flow_control import FCP, KIND_FCP, KIND_TLP, PFC, LinkControl, MACControl, Pause
from traffic.layers.infiniband import GRH, LNH_GLOBAL, LNH_LOCAL, LRH, NEXT_HEADER_BTH
from traffic.layers.pcie import TLP, TLPS

ROCE_UDP_PORT = 4791
ETHERTYPE_ROCE_V1 = 0x8915
ETHERTYPE_NATIVE = 0x88B5  # IEEE 802's first one for local experiments
ETHERTYPE_LINK_CONTROL = 0x88B6  # and its second
ETHERTYPE_MAC_CONTROL = 0x8808
CONTROL_MAC = "01:80:c2:00:00:01"  # no bridge forwards what is sent there


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
    bind_bottom_up(Ether, MACControl, type=ETHERTYPE_MAC_CONTROL)
    for control in (MACControl, Pause, PFC):
        bind_top_down(Ether, control, type=ETHERTYPE_MAC_CONTROL, dst=CONTROL_MAC)
    bind_bottom_up(Ether, LinkControl, type=ETHERTYPE_LINK_CONTROL)
    bind_top_down(Ether, LinkControl, type=ETHERTYPE_LINK_CONTROL, dst=CONTROL_MAC)
    bind_layers(LinkControl, FCP, kind=KIND_FCP)
    bind_bottom_up(LinkControl, TLP, kind=KIND_TLP)
    for tlp in TLPS:
        bind_top_down(LinkControl, tlp, kind=KIND_TLP)
