"""Figures that others published and nothing here was fitted to, but the one that says so: predicted, with the miss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from emu.harness.doorbell import Doorbells, Plan, cases_of, measure
from emu.harness.round_trip import round_trip_ps
from emu.run import Options
from emu.scenario.load import build
from emu.units import US

A100 = ("fabric.rate=200Gbps", "host.pcie.generation=4")  # DGX A100: ConnectX-6 at 200 Gb/s, PCIe 4.0
H100: tuple[str, ...] = ()  # ConnectX-7 at 400 Gb/s, PCIe 5.0: the profiles' values
PROFILE = "ndr"
CTAS = 64  # each puts as one warp
SMALL_BYTES = (8, 64, 256, 512)
FILLING_BYTES = (256, 512, 1024, 2048, 4096)
FULL = 0.95  # of the bytes a second that the largest size brings
INLINE = "host.queues.inline=28B"
NO_KERNEL = "host.cpu.synchronize=0ns"  # a program on the CPU posts, whenever it likes


@dataclass(frozen=True, slots=True)
class Source:
    """Who published it, on what system, and which settings stand for that here."""

    text: str
    settings: tuple[str, ...]


BLOG = Source("NVIDIA's article on NVSHMEM and GPUDirect Async: DGX A100, ConnectX-6", A100)
GIN = Source("NCCL GIN, arXiv 2511.15076: H100, ConnectX-7; put and signal, there and back", (*H100, INLINE))
WRITES = Source("factryze.ai: RDMA WRITE of few bytes, GPU to GPU", (*H100, NO_KERNEL))


@dataclass(frozen=True, slots=True)
class Figure:
    """`worth`: how sure the published value is; `fitted`: an input was chosen so that it comes out."""

    name: str
    unit: str
    published: float
    ours: float
    source: Source
    worth: str
    note: str = ""
    fitted: bool = False

    @property
    def off(self) -> float:
        """By which share ours is above it."""
        return self.ours / self.published - 1

    def to_json(self) -> dict[str, Any]:
        """As `--json` shows it."""
        own = {"source": self.source.text, "settings": [f"fabric.profile={PROFILE}", *self.source.settings]}
        return {**asdict(self), **own, "off": self.off}


@dataclass(slots=True)
class Compared:
    """The figures, and the rows of `emu doorbell` that they come from."""

    figures: list[Figure] = field(default_factory=list)
    doorbells: Doorbells = field(default_factory=Doorbells)

    def to_json(self) -> dict[str, Any]:
        """`published` beside what `emu doorbell` has else."""
        return {**self.doorbells.to_json(), "published": [figure.to_json() for figure in self.figures]}


@dataclass(slots=True)
class _Bench:
    settings: Sequence[str]
    seed: int | None
    messages: int | None
    options: Options
    doorbells: Doorbells

    def rows(self, system: Sequence[str], *paths: str, **plan: Any) -> list[dict[str, Any]]:
        """Rows of `emu doorbell`; fewer if it was interrupted."""
        settings = (*system, *self.settings)
        cases = cases_of(
            Plan(profile=PROFILE, paths=paths, settings=settings, seed=self.seed, messages=self.messages, **plan)
        )
        found = measure(cases, self.options)
        self.doorbells.rows += found.rows
        self.doorbells.missing += found.missing
        self.doorbells.interrupted |= found.interrupted
        self.doorbells.inputs = dict(self.doorbells.inputs) | dict(found.inputs)
        return found.rows

    def round_trip_us(self, path: str) -> float:
        """Put and signal, there and back; with inline data, as both libraries have it for few bytes."""
        given = {
            "name": f"round trip {path}",
            "fabric": {
                "profile": PROFILE,
                "topology": {"kind": "leaf_spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 2},
            },
            "host": {"path": path},
            "traffic": [],
        }
        return round_trip_ps(build(given, (INLINE, *self.settings), self.seed), self.options) / US


def compare(
    settings: Sequence[str],
    seed: int | None,
    options: Options,
    *,
    messages: int | None,
    before_each: Callable[[int, str], object] = lambda done, what: None,
) -> Compared:
    """Predict every figure; ends early where a run is interrupted. Raises ScenarioError, MachineError."""
    found = Compared()
    bench = _Bench(settings, seed, messages, options, found.doorbells)
    for number, (name, part) in enumerate(PARTS.items()):
        before_each(number, name)
        figures = list(part(bench))
        if found.doorbells.interrupted:
            break
        found.figures += figures
    return found


def _rates(bench: _Bench) -> Iterator[Figure]:
    for row in bench.rows(A100, "cpu_proxy", warps=(CTAS,)):
        rate = row["messages_per_s"] / 1e6
        note = "host.cpu.request was fitted to it"
        yield Figure("messages by the proxy (IBRC)", "M/s", 1.7, rate, BLOG, "unverified", note, fitted=True)
    for row in bench.rows((*A100, INLINE), "ibgda", warps=(128,)):
        rate = row["messages_per_s"] / 1e6
        yield Figure("nvshmem_p by IBGDA (inline)", "M/s", 180, rate, BLOG, "unverified", f"bound by {row['bound_by']}")


def _block_puts(bench: _Bench) -> Iterator[Figure]:
    found: dict[tuple[str, int], float] = {}
    for row in bench.rows(A100, "ibgda", "cpu_proxy", sizes_bytes=SMALL_BYTES, warps=(CTAS,)):
        found[row["path"], row["size_bytes"]] = row["messages_per_s"]
    if len(found) == 2 * len(SMALL_BYTES):
        ratios = [found["ibgda", size] / found["cpu_proxy", size] for size in SMALL_BYTES]
        note = f"ours with {CTAS} CTAs, {min(ratios):.0f} at {SMALL_BYTES[-1]} B; theirs: number not known"
        yield Figure(
            "block puts below 1 KiB, IBGDA over IBRC, up to", "times", 9.5, max(ratios), BLOG, "secondary", note
        )


def _filling(bench: _Bench) -> Iterator[Figure]:
    rows = bench.rows(A100, "ibgda", sizes_bytes=FILLING_BYTES, warps=(CTAS,))
    speeds = {row["size_bytes"]: row["size_bytes"] * row["messages_per_s"] for row in rows}
    if len(speeds) == len(FILLING_BYTES):
        full = min(size for size, speed in speeds.items() if speed >= FULL * speeds[FILLING_BYTES[-1]])
        note = f"ours {FULL:.0%} of the rate at {FILLING_BYTES[-1]} B, {CTAS} CTAs"
        yield Figure("size from which IBGDA fills the link", "B", 2048, full, BLOG, "secondary", note)


def _round_trips(bench: _Bench) -> Iterator[Figure]:
    ours = {path: bench.round_trip_us(path) for path in ("ibgda", "cpu_proxy")}
    if not all(ours.values()):
        bench.doorbells.interrupted = True
        return
    for name, path, published, worth in (
        ("round trip, GIN's GDAKI", "ibgda", 16.7, "secondary"),
        ("round trip, GIN's proxy", "cpu_proxy", 18.0, "unverified"),
        ("round trip, NVSHMEM IBGDA", "ibgda", 24.3, "unverified"),
        ("round trip, NVSHMEM IBRC", "cpu_proxy", 16.0, "unverified"),
    ):
        yield Figure(name, "us", published, ours[path], GIN, worth)
    ratio = ours["ibgda"] / ours["cpu_proxy"]
    for name, published in (
        ("  GDAKI over GIN's proxy", 16.7 / 18.0),
        ("  IBGDA over IBRC", 24.3 / 16.0),
    ):
        yield Figure(name, "times", published, ratio, GIN, "unverified", "above 1: the proxy is quicker")


def _writes(bench: _Bench) -> Iterator[Figure]:
    direct = {True: ("RDMA WRITE visible, GPU-direct", 1.5), False: ("RDMA WRITE visible, by host memory", 5.0)}
    for row in bench.rows((*H100, NO_KERNEL), "cpu_sync", gpu_direct=(True, False), warps=(1,)):
        name, published = direct[row["gpu_direct"]]
        yield Figure(
            name, "us", published, row["latency_ns"] / 1000, WRITES, "secondary", "posted by a program on the CPU"
        )


PARTS: dict[str, Callable[[_Bench], Iterator[Figure]]] = {
    "rates": _rates,
    "block puts": _block_puts,
    "a full link": _filling,
    "round trips": _round_trips,
    "single writes": _writes,
}
