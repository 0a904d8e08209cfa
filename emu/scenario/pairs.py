"""Who sends to whom: pairs of hosts, and an incast's senders."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from emu.scenario.field import TEXT_LIMIT, Name, refuse, show


def _check_pair(pair: Any) -> Any:
    if isinstance(pair, str) or not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise refuse(f"{show(pair)} is no pair of hosts: write [h0, h1]")
    if pair[0] == pair[1]:
        raise refuse(f"{show(pair)}: a pair is two different hosts")
    return pair


def _check_pairs(pairs: Any) -> Any:
    if isinstance(pairs, str) or not isinstance(pairs, (list, tuple)) or not pairs:
        raise refuse(f"{show(pairs)} is no list of pairs: write [[h0, h1]]")
    return pairs


def _check_senders(senders: Any) -> int | tuple[str, ...]:
    if isinstance(senders, int) and not isinstance(senders, bool):
        if senders < 1:
            raise refuse(f"{senders} is out of range; allowed: 1 to the number of hosts less one")
        return senders
    if not isinstance(senders, (list, tuple)) or not senders:
        raise refuse(f"{show(senders)}: write how many, like 15, or which, like [h1, h2]")
    seen: set[str] = set()
    for place, name in enumerate(senders):
        if not isinstance(name, str) or not name or len(name) > TEXT_LIMIT:
            raise refuse(f"{show(name)} is no name: write text, in quotes if it looks like a number", place)
        if name in seen:
            raise refuse(f"{show(name)} appears twice; a sender is named once (qps gives it more queue pairs)", place)
        seen.add(name)
    return tuple(senders)


Pair = Annotated[tuple[Name, Name], BeforeValidator(_check_pair)]
Pairs = Annotated[tuple[Pair, ...], BeforeValidator(_check_pairs)]
Senders = Annotated[
    int | tuple[str, ...],
    PlainValidator(_check_senders),
    PlainSerializer(lambda senders: list(senders) if isinstance(senders, tuple) else senders),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "array", "minItems": 1, "items": {"type": "string"}}]}
    ),
]
