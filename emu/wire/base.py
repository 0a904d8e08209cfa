"""What a wire is: one direction of one link, carrying frames' bytes; when they arrive is not its business."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from emu.frame import Frame


class Wire(Protocol):
    """Send at the instant the first bit leaves; receive, when it is due at the far end, what is still in flight."""

    foreign: int  # frames seen here that nobody in the model sent
    lost: int  # frames that did not come out, refused sends included
    disturbed: bool  # whether anything outside the model touched this wire
    warnings: list[str]
    on_foreign: Callable[[Frame], object] | None  # takes in foreign frames that are frames we know

    @property
    def in_flight(self) -> Collection[Frame]:
        """Those sent that have not come out yet, always the same object: they are to be received when they are due."""

    def send(self, frame: Frame) -> bool:
        """Put the frame's bytes on the wire. False: refused (an end is down or gone), so it is lost now."""

    def receive(self, frame: Frame) -> Frame | None:
        """The frame that is due, as its bytes came out: itself, parsed anew if changed, or None if lost.

        Frames come out in the order they went in, whatever the order they are asked for. One that is not in flight came
        out as it was sent: it need not be asked for.
        """

    def poll(self) -> None:
        """Look for foreign frames while nothing of ours is in flight."""

    def finish(self) -> None:
        """After a run: read on, count what nobody sent, and check that the kernel dropped nothing."""
