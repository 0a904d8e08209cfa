"""Print every figure beside its bound; exit 1 if one is not kept."""

from __future__ import annotations

import sys

from tests.bench import build, events, host_path, memory, queueing, veth


def main() -> int:
    """Measure in turn, printing as it goes."""
    failed = False
    for part in (events, host_path, veth, build, memory, queueing):
        for figure in part.measure():
            print(figure.line(), flush=True)
            failed |= not figure.holds
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
