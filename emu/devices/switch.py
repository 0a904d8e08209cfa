"""A switch: one table from destination to egress ports, cut-through or store-and-forward."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from emu.devices.egress import EgressPort
from emu.engine import Engine
from emu.frame import Frame
from emu.parts import SERIALIZATION

STORE_AND_FORWARD = "store_and_forward"
CUT_THROUGH = "cut_through"
NO_CREDITS = "no_credits"  # why a frame was dropped: those it waited for cannot come
_WORD = 0xFFFFFFFF
DEALT_LIMIT = 1 << 16  # flows whose turn a switch remembers: strangers may make up any number
_MIX_1, _MIX_2 = 0x85EBCA6B, 0xC2B2AE35  # MurmurHash3's: a salt alone would leave two switches' choices correlated


class Switch:
    """Forwards by destination address; where several ports lead on, the flow's hash picks one for all its frames."""

    __slots__ = (
        "_dealt",
        "_deals_from",
        "_engine",
        "_mixed_rates",
        "_salt",
        "_table",
        "_turns",
        "dropped",
        "dropped_bytes",
        "hop_latency_ps",
        "lossless_drop_places",
        "lossless_drops",
        "lossy_drops",
        "name",
        "ports",
        "received",
        "slow_to_fast",
        "switching",
    )

    def __init__(
        self,
        engine: Engine,
        name: str,
        *,
        hop_latency_ps: int,
        switching: str,
        slow_to_fast: str = CUT_THROUGH,
        deals_from: int | None = None,
    ) -> None:
        """`deals_from`: flows are dealt out over equal ways as they come, from that one on; None: by their hash."""
        self._engine = engine
        self._salt = crc32(name.encode())  # switches hash alike but not equally, or all would choose the same way
        self._table: dict[int, tuple[EgressPort, ...]] = {}
        self._mixed_rates = True  # whether a frame may leave faster than it came
        self.name = name
        self.hop_latency_ps = hop_latency_ps
        self.switching = switching
        self.slow_to_fast = slow_to_fast
        self.ports: dict[int, EgressPort] = {}
        self.received = 0
        self.dropped: dict[str, int] = {}
        self.dropped_bytes = 0
        self.lossless_drops = 0  # for want of room, or by a watchdog
        self.lossy_drops = 0
        self.lossless_drop_places: dict[str, int] = {}
        self._deals_from = deals_from
        self._dealt: dict[tuple[int, int], EgressPort] = {}  # by destination and hash
        self._turns: dict[int, int] = {}  # flows to each destination that were dealt out

    @property
    def waits_for_last_bit(self) -> bool:
        """Whether a frame is acted on only when all of it is in."""
        return self.switching == STORE_AND_FORWARD

    def install(self, table: Mapping[int, tuple[int, ...]]) -> None:
        """Use this forwarding table: destination address to port numbers, all of equal distance."""
        self._table = {to: tuple(self.ports[number] for number in numbers) for to, numbers in table.items()}
        self._dealt, self._turns = {}, {}
        self._mixed_rates = len({port.rate_bps for port in self.ports.values()}) > 1

    def choose(self, destination: int, path_hash: int) -> EgressPort | None:
        """The egress for frames of that flow; None where the destination is unknown."""
        ports = self._table.get(destination)
        if not ports:
            return None
        return ports[0] if len(ports) == 1 else self._pick(ports, destination, path_hash)

    def _pick(self, ports: tuple[EgressPort, ...], destination: int, path_hash: int) -> EgressPort:
        if self._deals_from is not None:
            return self._deal(ports, destination, path_hash)
        mixed = (path_hash ^ self._salt) * _MIX_1 & _WORD
        mixed = (mixed ^ mixed >> 15) * _MIX_2 & _WORD
        return ports[(mixed >> 16) % len(ports)]

    def receive(self, frame: Frame) -> None:
        """A frame comes out of the pipeline: its first bit entered `hop_latency_ps` ago (its last, if stored)."""
        self.received += 1
        envelope = frame.envelope
        ports = self._table.get(envelope.destination)
        if not ports:
            return self._drop(frame, "unknown_destination")
        if frame.bad and self.switching == STORE_AND_FORWARD:
            return self._drop(frame, "bad_crc")
        port = ports[0] if len(ports) == 1 else self._pick(ports, envelope.destination, envelope.path_hash)
        if self._mixed_rates and self.switching == CUT_THROUGH:
            late_ps = self._underrun_ps(frame, port)
            if late_ps:
                frame.parts += late_ps << SERIALIZATION
                return self._engine.at(self._engine.now_ps + late_ps, port.enqueue, frame)
        return port.enqueue(frame)

    def _deal(self, ports: tuple[EgressPort, ...], destination: int, path_hash: int) -> EgressPort:
        """The way of a flow: for each destination the next one in turn, kept from then on."""
        port = self._dealt.get((destination, path_hash))
        if port is None and len(self._dealt) >= DEALT_LIMIT:
            port = ports[path_hash % len(ports)]
        if port is None:
            turn = self._turns.get(destination, self._deals_from or 0)
            self._turns[destination] = turn + 1
            port = self._dealt[destination, path_hash] = ports[turn % len(ports)]
        return port

    def refuse(self, frame: Frame, *, lossless: bool, place: str) -> None:
        """There was no room for a frame at `place`, an ingress and a priority: it is gone, loudly if lossless."""
        self.received += 1
        self._count(frame, "no_room")
        self._lament(lossless, place)

    def give_up(self, frame: Frame) -> None:
        """A watchdog threw a frame away that waited here, or was to wait."""
        self._count(frame, "watchdog")
        account = frame.ingress.accounts[frame.envelope.priority]
        self._lament(account.is_lossless, account.name)

    def abandon(self, frame: Frame) -> None:
        """A frame that waited here waited for credits that cannot come: its link is as good as down."""
        self._drop(frame, NO_CREDITS)

    def _lament(self, lossless: bool, place: str) -> None:
        if lossless:
            self.lossless_drops += 1
            self.lossless_drop_places[place] = self.lossless_drop_places.get(place, 0) + 1
        else:
            self.lossy_drops += 1

    def _count(self, frame: Frame, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        self.dropped_bytes += frame.wire_bytes

    def _drop(self, frame: Frame, reason: str) -> None:
        self._count(frame, reason)
        if frame.ingress is not None:
            frame.ingress.release(frame)

    def _underrun_ps(self, frame: Frame, port: EgressPort) -> int:
        """How much later a frame from a slower link must start, so that its bits never run out on the way."""
        ser_ps = port.serialization_ps(frame.wire_bytes)
        if frame.ser_ps <= ser_ps:
            return 0
        return frame.ser_ps if self.slow_to_fast == STORE_AND_FORWARD else frame.ser_ps - ser_ps
