"""How links keep from overrunning each other: InfiniBand's credits, Ethernet's pause frames, and their watchdog."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from emu import units
from emu.scenario.field import (
    SIZE_JSON,
    SIZES,
    Duration,
    Model,
    Size,
    Time,
    choice,
    exact,
    parse_duration_ps,
    read,
    refuse,
    whole,
)
from emu.scenario.numbers import NumberMap, number_map, number_pairs
from emu.scenario.optional import or_word

BLOCK_BYTES = 64  # IBTA vol. 1, 7.9: what credits count
WINDOW_BLOCKS = 2048  # more cannot be granted: half of the 12-bit counts
DATA_VLS = 15
MAX_SL = 15
MAX_PRIORITY = 7
TABLE_ENTRIES = 64  # IBTA vol. 1, 7.6.9
MAX_QUANTA = 65_535  # a 16-bit field
WHY_BLOCKS = "blocks of 64 bytes; a receiver grants no more at once"

Blocks = Annotated[int, *whole(1, WINDOW_BLOCKS, WHY_BLOCKS)]
Vls = Annotated[int, *whole(1, DATA_VLS, "VL15 carries management")]
SlToVl = Annotated[NumberMap, *number_map("SL", MAX_SL, "VL", DATA_VLS - 1)]
VlTable = Annotated[tuple[tuple[int, int], ...], *number_pairs("VL", DATA_VLS - 1, "weight", 255, TABLE_ENTRIES)]
Queues = Annotated[NumberMap, *number_map("priority", MAX_PRIORITY, "queue", MAX_PRIORITY)]
Weights = Annotated[NumberMap, *number_map("queue", MAX_PRIORITY, "weight", 255)]
Headroom = Literal["tight", "mixed", "vendor"]
HEADROOMS: tuple[Headroom, ...] = ("tight", "mixed", "vendor")


def _read_headroom(value: object) -> object:
    if isinstance(value, str) and value in HEADROOMS:
        return value
    try:
        return read(units.parse_size_bytes, value)
    except PydanticCustomError as error:
        raise refuse(f"{error.message()}; or one of the words {', '.join(HEADROOMS)}") from None


HeadroomText = Annotated[
    int | Headroom,
    PlainValidator(_read_headroom),
    PlainSerializer(lambda value: value if isinstance(value, str) else exact(value, SIZES), return_type=str),
    WithJsonSchema({"anyOf": [{"enum": list(HEADROOMS)}, SIZE_JSON.json_schema]}),
]


class Credits(Model):
    """When a receiver grants credits anew, and what the packet that does takes on the wire."""

    threshold_blocks: Blocks = Field(alias="threshold")  # freed, that are worth a flow-control packet
    refresh_ps: Annotated[Duration | None, *or_word("never", parse_duration_ps)] = Field(alias="refresh")
    fcp_wire_bytes: Size


class VlArbitration(Model):
    """The two tables of (VL, weight in blocks of 64 bytes); without a low one every VL has weight 64 in it."""

    high: VlTable
    low: VlTable
    high_limit: Annotated[int, *whole(0, 255, "in 4096 bytes; 255 is without end")]


class Pause(Model):
    """Pause frames: how long each pauses for, and how soon the paused side stops and goes on."""

    quanta: Annotated[int, *whole(1, MAX_QUANTA, "of 512 bit times; a 16-bit field, and 0 would be XON")]
    response_ps: Time = Field(alias="response")
    resume_ps: Time = Field(alias="resume")


class Watchdog(Model):
    """What is done about a pause that does not end."""

    detection_ps: Duration = Field(alias="detection")
    restoration_ps: Duration = Field(alias="restoration")
    action: Annotated[Literal["drop", "forward"], *choice("drop", "forward")]
