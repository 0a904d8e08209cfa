"""`kind: replay`: a captured flow's operations, posted again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema

from emu.scenario.field import Model, Time, refuse, show
from emu.scenario.posting import Priority

UNPACED = "max"
HIGHEST_SPEED = 10**9


def _check_file(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise refuse(f"{show(value)} is no file: write the path of a capture (pcap, pcapng or ERF)")
    path = Path(value)
    try:
        if not path.exists():
            raise refuse(f"{show(value)}: no such file; write the path of a capture (pcap, pcapng or ERF)")
        if not path.is_file():
            raise refuse(f"{show(value)} is no regular file; write the path of a capture (pcap, pcapng or ERF)")
        readable = os.access(path, os.R_OK)
    except OSError as error:
        raise refuse(f"{show(value)}: {error.strerror}") from None
    if not readable:
        raise refuse(f"{show(value)} may not be read")
    return value


def _check_map(value: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, Mapping):
        raise refuse(f"{show(value)} is no mapping from a capture's endpoints to hosts: write like {{192.0.2.1: h0}}")
    for end, host in value.items():
        if not isinstance(end, str) or not isinstance(host, str) or not host:
            raise refuse(f"{show(host)} is no host: write text, like h0", str(end))
    hosts = list(value.values())
    for end, host in value.items():
        if hosts.count(host) > 1:
            raise refuse(f"{show(host)} is given to several endpoints; allowed: another host for each", end)
    return tuple(value.items())


def _check_speed(value: Any) -> Fraction | None:
    if value is None or isinstance(value, Fraction) or value == UNPACED:
        return None if value == UNPACED else value
    text = str(value)
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)) or len(text) > 30:
            raise ValueError
        speed = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise refuse(f"{show(value)} is no speed: write 1, 0.5 or 10, or {UNPACED}") from None
    if not 0 < speed <= HIGHEST_SPEED:
        raise refuse(f"{show(value)} is out of range; allowed: above 0 to {HIGHEST_SPEED}, or {UNPACED}")
    return speed


CaptureFile = Annotated[str, BeforeValidator(_check_file), WithJsonSchema({"type": "string", "minLength": 1})]
HostMap = Annotated[
    tuple[tuple[str, str], ...],
    PlainValidator(_check_map),
    PlainSerializer(dict, return_type=dict),
    WithJsonSchema({"type": "object", "propertyNames": {"pattern": "."}, "additionalProperties": {"type": "string"}}),
]
Speed = Annotated[
    Fraction | None,  # None: not paced
    PlainValidator(_check_speed),
    PlainSerializer(lambda speed: UNPACED if speed is None else str(speed), return_type=str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^(max|[0-9./]+)$"}]}),
]


class Replay(Model):
    """A capture's operations: each of its queue pairs that asks has one here, which posts the same in the same order.

    At the capture's times divided by `speed`; with `max` as soon as there is room among as many as were outstanding.
    """

    kind: Literal["replay"]
    file: CaptureFile
    map: HostMap = ()  # from the capture's addresses to hosts; those not named get the hosts that are left, in order
    speed: Speed = Fraction(1)
    start_ps: Time = Field(default=0, alias="start")
    priority: Priority | None = None
