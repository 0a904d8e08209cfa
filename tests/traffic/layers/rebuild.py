"""Building a dissected packet anew from its fields, not from the bytes Scapy remembers."""

from scapy.packet import Packet

from traffic.layers import BTH, ICRC, LRH, VCRC, Pad


def rebuilt(packet: Packet, computed: bool) -> bytes:
    """The packet's bytes; `computed`: padding, counts, lengths and check sums worked out again."""
    fresh = packet.copy()
    layer = fresh
    while layer:
        layer.clear_cache()
        if computed:
            for field in ("len", "chksum", "plen", "length", "padcount"):
                if layer.name not in ("UDP", "GRH") or field == "len":
                    layer.fields.pop(field, None)
        layer = layer.payload
    if computed:
        if VCRC not in fresh:
            last = fresh[Pad] if Pad in fresh else fresh[ICRC]
            last.underlayer.remove_payload()
        else:
            fresh[ICRC].icrc = fresh[VCRC].vcrc = None
    assert BTH in fresh or LRH in fresh
    return bytes(fresh)
