"""Which frames of one direction of a link an injection meets, and what befalls each: rules drawn from the seed.

Every rule sees every frame that comes out of the wire, in order, and counts for itself those that match: what one does
changes nothing of the others, nor of which numbers they draw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from emu import opcodes
from emu.engine import stream
from emu.frame import ControlFrame, Frame
from emu.framing.control import Fcp

DATA, ACK, CNP, PFC, FCP = "data", "ack", "cnp", "pfc", "fcp"
EFFECTS = ("drop", "corrupt", "duplicate", "reorder", "delay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What befalls frames of a kind (None: of any), an operation (an opcode of RC), a destination queue pair.

    Of those that match, only the `nth` ones (counted from 1) or `every` so many; empty and 0: all.
    """

    kind: str | None = None
    operation: int | None = None
    qp: int | None = None
    nth: frozenset[int] = frozenset()
    every: int = 0
    drop: Fraction = Fraction(0)
    corrupt: Fraction = Fraction(0)
    duplicate: Fraction = Fraction(0)
    reorder: Fraction = Fraction(0)
    delay_ps: int = 0


@dataclass(slots=True)
class Fate:
    """What befalls one frame."""

    drop: bool = False
    corrupt: bool = False
    bit: int = 0  # which is turned if corrupt: a large number, to be taken modulo what there is
    copies: int = 0
    reorder: bool = False
    delay_ps: int = 0


def kind_of(frame: Frame) -> str:
    """A link's own frames are `pfc` (PAUSE too) and `fcp`; of others, what moves data, what answers, and CNPs."""
    if isinstance(frame, ControlFrame):
        return FCP if isinstance(frame.control, Fcp) else PFC
    return kind_of_opcode(frame.opcode)


def kind_of_opcode(opcode: int) -> str:
    """Requests and READ responses are `data`; acknowledgements, atomics' too, are `ack`."""
    if opcode == opcodes.CNP:
        return CNP
    return DATA if opcodes.CARRIES_DATA[opcode] else ACK


class Dice:
    """All rules of one direction of one link."""

    def __init__(self, seed: int, direction: str, rules: Iterable[tuple[int, Rule]]) -> None:
        """`rules` with their places in the scenario: what one draws hangs on its own place alone."""
        self._rules = [_Drawn(rule, seed, f"inject/{direction}/{place}") for place, rule in rules]

    def cast(self, frame: Frame) -> Fate | None:
        """What befalls the next frame that comes out; None: nothing."""
        fate: Fate | None = None
        for rule in self._rules:
            if rule.meets(frame):
                fate = fate or Fate()
                rule.add_to(fate, is_own=isinstance(frame, ControlFrame))
        return fate


class _Drawn:
    """A rule, its count and its random numbers: for each effect its own."""

    def __init__(self, rule: Rule, seed: int, purpose: str) -> None:
        self._rule = rule
        self._matched = 0
        self._drop = _Chance(rule.drop, stream(seed, f"{purpose}/drop"))
        self._corrupt = _Chance(rule.corrupt, stream(seed, f"{purpose}/corrupt"))
        self._duplicate = _Chance(rule.duplicate, stream(seed, f"{purpose}/duplicate"))
        self._reorder = _Chance(rule.reorder, stream(seed, f"{purpose}/reorder"))
        self._bits = stream(seed, f"{purpose}/bit")

    def meets(self, frame: Frame) -> bool:
        """Whether it is one that matches, and its turn."""
        rule = self._rule
        if rule.kind is not None and kind_of(frame) != rule.kind:
            return False
        if rule.operation is not None or rule.qp is not None:
            if isinstance(frame, ControlFrame):
                return False
            operation = None if frame.opcode == opcodes.CNP else frame.opcode & opcodes.OPERATION_MASK
            if rule.operation is not None and operation != rule.operation:
                return False
            if rule.qp is not None and frame.envelope.destination_qp != rule.qp:
                return False
        self._matched += 1
        if rule.nth:
            return self._matched in rule.nth
        return not rule.every or self._matched % rule.every == 0

    def add_to(self, fate: Fate, *, is_own: bool) -> None:
        """Draw. A link's own frames keep their order: they are the state of its two ends."""
        if self._drop.falls():
            fate.drop = True
        if self._corrupt.falls():
            fate.corrupt, fate.bit = True, self._bits.getrandbits(32)
        if self._duplicate.falls():
            fate.copies += 1
        if not is_own and self._reorder.falls():
            fate.reorder = True
        fate.delay_ps += self._rule.delay_ps


class _Chance:
    """Falls at a rate; certain and impossible ones need no number."""

    __slots__ = ("_numbers", "_rate")

    def __init__(self, rate: Fraction, numbers: Random) -> None:
        self._rate = float(rate)
        self._numbers = numbers

    def falls(self) -> bool:
        """Whether, this time."""
        return self._rate > 0 and (self._rate >= 1 or self._numbers.random() < self._rate)
