"""A scenario run in memory, with all its messages kept."""

from __future__ import annotations

from dataclasses import dataclass

from emu.frame import Message
from emu.run.assembly import Assembly
from emu.scenario.load import parse

TEXT = """
name: watched
fabric: {{profile: {profile}, topology: {topology}, {fabric}}}
traffic: [{traffic}]
run: {{seed: {seed}}}
"""
LEAF_SPINE = "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 3}"


@dataclass
class Watched:
    """What was posted, in order, and the fabric afterwards."""

    assembly: Assembly
    messages: list[Message]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Who wrote to whom, a message each, sorted."""
        return sorted((message.flow.source, message.flow.destination) for message in self.messages)


def watch(
    *traffic: str, profile: str = "native", fabric: str = "", topology: str = LEAF_SPINE, seed: int = 1
) -> Watched:
    """Build it, run it to its end; every message must have arrived."""
    text = TEXT.format(profile=profile, topology=topology, fabric=fabric, traffic=", ".join(traffic), seed=seed)
    assembly = Assembly(parse(text, "watched.yaml"))
    messages: list[Message] = []
    measured = assembly.taps.message_posted
    assert measured is not None

    def posted(message: Message) -> None:
        messages.append(message)
        measured(message)

    assembly.taps.message_posted = posted
    assembly.join(None)
    assembly.engine.run()
    assert assembly.engine.tasks == 0
    assert all(message.status == "SUCCESS" for message in messages)
    return Watched(assembly, messages)
