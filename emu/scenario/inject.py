"""What is injected into links: loss, duplicates, reordering, corruption, delay; at a rate, by count, or by frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from emu import opcodes
from emu.scenario.fabric import Fabric
from emu.scenario.field import TEXT_LIMIT, Model, Time, choice, nearest, refuse, show, whole
from emu.scenario.share import Rate
from emu.topology import link_names

EVERY_LINK = "all"
BOTH = "both"
NEAR_LIMIT = 10_000  # names looked at for the nearest: more would take seconds
NTH_LIMIT = 10_000  # numbers in a list
COUNT_LIMIT = 10**12
EFFECTS = ("drop", "duplicate", "reorder", "corrupt", "delay")
OWN_KINDS = ("pfc", "fcp")  # a link's own frames
KINDS = ("data", "ack", "cnp", *OWN_KINDS)
OPERATIONS: dict[str, int] = {
    operation.name.removeprefix("RC ").removeprefix("RDMA ").lower().replace(" ", "_"): code
    for code, operation in opcodes.OPERATIONS.items()
    if code & opcodes.TRANSPORT_MASK == opcodes.RC
}
"""The operations of opcodes, as `write_middle`; of whatever transport."""
HIGHEST_QP = 2**24 - 1


def _read_link(value: object) -> object:
    if not isinstance(value, str) or not value or len(value) > TEXT_LIMIT:
        raise refuse(f"{show(value)} is no link's name: write it like leaf0-h0, or all")
    return value


def _read_nth(value: object) -> object:
    numbers = value if isinstance(value, (list, tuple)) else [value]
    if not 1 <= len(numbers) <= NTH_LIMIT:
        raise refuse(f"{len(numbers)} numbers; allowed: 1 to {NTH_LIMIT}")
    for place, number in enumerate(numbers):
        at = (place,) if numbers is value else ()
        if isinstance(number, bool) or not isinstance(number, int):
            raise refuse(f"{show(number)} is no whole number; allowed: 1 or more, or a list like [3, 5]", *at)
        if not 1 <= number <= COUNT_LIMIT:
            raise refuse(f"{show(number)} is out of range; allowed: 1 to {COUNT_LIMIT} (the first is 1)", *at)
    return tuple(numbers)


def _check_operation(value: object) -> object:
    if value not in OPERATIONS:
        raise refuse(f"{show(value)} is no opcode; {nearest(str(value), list(OPERATIONS)).removeprefix('; ')}")
    return value


_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": COUNT_LIMIT}
LinkName = Annotated[str, BeforeValidator(_read_link)]
Kind = Annotated[Literal["data", "ack", "cnp", "pfc", "fcp"], *choice(*KINDS)]
Operation = Annotated[str, BeforeValidator(_check_operation), WithJsonSchema({"enum": list(OPERATIONS)})]
Nth = Annotated[
    tuple[int, ...],
    BeforeValidator(_read_nth),
    WithJsonSchema({"anyOf": [_NUMBER, {"type": "array", "minItems": 1, "maxItems": NTH_LIMIT, "items": _NUMBER}]}),
]


class Match(Model):
    """Which frames: all of these hold. Of those that match, counted from 1, only the `nth`, or one in `every`."""

    kind: Kind | None = None
    opcode: Operation | None = None
    qp: Annotated[int, *whole(0, HIGHEST_QP, "24 bits")] | None = None  # the destination's
    nth: Nth | None = None
    every: Annotated[int, *whole(1, COUNT_LIMIT)] | None = None

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.nth is not None and self.every is not None:
            raise refuse("nth is given too; allowed: one of them", "every")
        if self.kind in OWN_KINDS:
            for key, value in (("opcode", self.opcode), ("qp", self.qp)):
                if value is not None:
                    raise refuse(f"{self.kind} frames are a link's own and have none; allowed: nth, every", key)
        if self.kind is not None and self.opcode is not None and kind_of_operation(self.opcode) != self.kind:
            raise refuse(f"{self.opcode} is {kind_of_operation(self.opcode)}, not {self.kind}", "opcode")
        return self


def kind_of_operation(name: str) -> str:
    """`data` for what moves data, `ack` for what answers."""
    return "data" if opcodes.CARRIES_DATA[OPERATIONS[name]] else "ack"


class Inject(Model):
    """One rule: what befalls frames on a link, each effect at its own rate; `delay` each that matches."""

    link: LinkName
    direction: LinkName = BOTH
    drop: Rate = Fraction(0)
    duplicate: Rate = Fraction(0)
    reorder: Rate = Fraction(0)
    corrupt: Rate = Fraction(0)
    delay_ps: Time = Field(default=0, alias="delay")
    match: Match = Match()

    @model_validator(mode="after")
    def _check_effects(self) -> Self:
        if not any((self.drop, self.duplicate, self.reorder, self.corrupt, self.delay_ps)):
            more = ", more than 0" if self.model_fields_set & {*EFFECTS, "delay_ps"} else ""
            raise refuse(f"nothing is injected: give one or more of {', '.join(EFFECTS)}{more}")
        if self.match.kind in OWN_KINDS and self.reorder:
            raise refuse(
                f"{self.match.kind} frames keep their order; allowed: drop, duplicate, corrupt, delay",
                "reorder",
            )
        return self

    def meets(self, direction: str, *link: str) -> bool:
        """Whether it is about that direction of the link of those two names."""
        return self.link in (EVERY_LINK, *link) and self.direction in (BOTH, direction)


def check_inject(inject: Sequence[Inject], fabric: Fabric) -> None:
    """Refuse links that are not there, and frames that never come; places begin with `inject`."""
    if not inject:
        return
    pairs = list(fabric.topology.link_ends())
    forward, backward = link_names(pairs), link_names((b, a) for a, b in pairs)
    other = dict(zip([*forward, *backward], [*backward, *forward], strict=True))
    for place, each in enumerate(inject):
        if each.link != EVERY_LINK and each.link not in other:
            near = nearest(each.link, list(other)[:NEAR_LIMIT])
            raise refuse(f"unknown link {show(each.link)}{near}", "inject", place, "link")
        names = (each.link, other[each.link]) if each.link != EVERY_LINK else ()
        if each.direction not in (BOTH, *names):
            allowed = ", ".join((BOTH, *names))
            raise refuse(f"{show(each.direction)} is not allowed; allowed: {allowed}", "inject", place, "direction")
        kinds = list(_kinds(fabric))
        if each.match.kind is not None and each.match.kind not in kinds:
            reason = f"no {each.match.kind} frames come on this fabric; allowed: {', '.join(kinds)}"
            raise refuse(reason, "inject", place, "match", "kind")


def _kinds(fabric: Fabric) -> Iterable[str]:
    """What its links carry."""
    yield from ("data", "ack")
    if fabric.congestion_control != "none":
        yield "cnp"
    if fabric.flow_control == "pfc":
        yield "pfc"
    if fabric.flow_control == "credits":
        yield "fcp"
