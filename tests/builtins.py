"""The built-in scenarios, and which of them are too long for tests that run each of them with something more."""

from __future__ import annotations

from emu.scenario import builtin

LONG = frozenset(("incast-16mib-pfc", "incast-16mib-dcqcn"))  # 240 MiB each: seconds of work
QUICK = [name for name in builtin.names() if name not in LONG]
INCOMPLETE = frozenset(name for name in builtin.names() if name.startswith("ring-deadlock"))
"""Those that end with exit code 5, as they expect."""
LOUD = frozenset(("headroom-one-byte-short", "pause-storm")) | INCOMPLETE
"""Those with warnings of what they are there to show."""
