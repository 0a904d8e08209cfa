"""Peak memory of a run against one ten times as long, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.bench.figure import Figure

LIMIT_MB = 2.0
ROUNDS = (4, 40)
CHILD = """
import json, sys
from emu.run import Options, run
from tests.bench.traffic import all_to_all
result = run(all_to_all(size="64KiB", count=int(sys.argv[1])), Options(wire="memory"))
print(json.dumps([result["run"]["frame_hops"], open("/proc/self/status").read().split("VmHWM:")[1].split()[0]]))
"""


def measure() -> list[Figure]:
    """How many megabytes more ten times the frames take."""
    (few, few_kb), (many, many_kb) = (_peak(count) for count in ROUNDS)
    return [
        Figure(
            "memory that ten times the frames add, MB",
            (many_kb - few_kb) / 1024,
            LIMIT_MB,
            f"{few} frame-hops in {few_kb // 1024} MB, {many} in {many_kb // 1024} MB",
        )
    ]


def _peak(count: int) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", CHILD, str(count)], capture_output=True, text=True, check=True)
    frame_hops, peak_kb = json.loads(done.stdout)
    return int(frame_hops), int(peak_kb)
