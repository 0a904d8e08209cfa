"""Whatever bytes come in, a verdict or a WireError comes out: soon, and in little memory. Seeds make it repeatable."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from emu.errors import WireError
from emu.framing import control
from emu.framing.dissect import LINK_ERF, LINK_ETHERNET, LINK_INFINIBAND, LINK_USER0, dissect
from emu.framing.dissection import Dissection
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from tests.framing.mangle import LARGEST_BYTES, frames, seeds
from tests.tree import ROOT

ROCE, NATIVE = RoceFraming(), NativeFraming(8)
LINK_TYPES = (LINK_ETHERNET, LINK_ETHERNET, LINK_ETHERNET, LINK_INFINIBAND, LINK_USER0, LINK_ERF, 113)
ERF_TYPES = (2, 21, 25, 0x95, 7)
SLOWEST_S = 0.25  # of CPU for one frame
MEMORY_BYTES = 64 * 1024 + 4 * LARGEST_BYTES  # for one frame, whatever it says


def corpus() -> list[bytes]:
    shared = ROOT.parent / "shared" / "data"
    return seeds(shared if shared.is_dir() else None)


def check_dissection(found: Dissection, data: bytes) -> str:
    """What must hold of every verdict; the kind of it."""
    assert len(found.payload) <= len(data)
    assert len(found.info) < 400
    assert found.network != "other" or (found.icrc, found.vcrc) == ("none", "none")
    assert (found.opcode is None) == (found.psn is None)
    return f"dissect: {found.network} {found.icrc}"


def check_comes_back(framing: RoceFraming | NativeFraming, data: bytes) -> str:
    """What decode accepts can be encoded, and says the same then."""
    frame = framing.decode(data)
    frame.data = None
    again = framing.decode(framing.encode(frame))
    for field in ("opcode", "psn", "payload", "reth", "aeth", "extension", "ack_request", "solicited", "fecn", "becn"):
        assert getattr(again, field) == getattr(frame, field), field
    return f"{framing.name}: decoded"


def try_all(numbers: random.Random, data: bytes) -> list[str]:
    """What became of one frame in every parser. Anything but a WireError comes through."""

    def dissected() -> str:
        link_type, before = numbers.choice(LINK_TYPES), b""
        if link_type == LINK_ERF:
            before = bytes(8) + bytes([numbers.choice(ERF_TYPES)]) + numbers.randbytes(7)
        original = numbers.choice((None, None, len(data) + 40, 0))
        return check_dissection(dissect(link_type, before + data, original), before + data)

    outcomes = []
    parsers: dict[str, Callable[[], str]] = {
        "dissect": dissected,
        "rocev2": lambda: check_comes_back(ROCE, data),
        "native": lambda: check_comes_back(NATIVE, data),
        "control": lambda: f"control: {type(control.decode(data)).__name__}",
    }
    for name, parse in parsers.items():
        started = time.thread_time()
        try:
            outcomes.append(parse())
        except WireError as error:
            assert 0 < len(str(error)) < 200
            outcomes.append(f"{name}: refused")
        assert time.thread_time() - started < SLOWEST_S
    return outcomes


def attack(seed: int, count: int) -> Counter[str]:
    numbers = random.Random(seed)
    outcomes: Counter[str] = Counter()
    for data in frames(numbers, corpus(), count):
        try:
            outcomes.update(try_all(numbers, data))
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}; frame {data.hex()}") from error
    return outcomes


def check_outcomes(outcomes: Counter[str], count: int) -> None:
    """Every parser saw every frame, and the mangling got past the checks often enough to mean something."""
    for parser, least in {"rocev2": 0.02, "native": 0.02}.items():
        assert outcomes[f"{parser}: decoded"] + outcomes[f"{parser}: refused"] == count
        assert outcomes[f"{parser}: decoded"] > least * count
    for kind in ("Pfc", "Pause", "Fcp"):
        assert outcomes[f"control: {kind}"] > 0.002 * count
    for verdict in ("rocev2 ok", "rocev2 bad", "rocev2 unchecked", "rocev1 bad", "native ok", "native bad", "fcp none"):
        assert outcomes[f"dissect: {verdict}"] > 0.002 * count, verdict


def test_frames_by_the_thousand() -> None:
    count = 20_000
    check_outcomes(attack(3, count), count)


@pytest.mark.long
def test_a_million_frames() -> None:
    count = 1_000_000
    check_outcomes(attack(4, count), count)


def test_memory_is_bounded() -> None:
    """The peak while one frame is parsed, be it as long as a jumbo frame or say that it is longer."""
    numbers = random.Random(5)
    for data in frames(numbers, corpus(), 500):  # so that templates and caches are made before anything is measured
        try_all(numbers, data)

    def peak_bytes(data: bytes) -> int:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try_all(numbers, data)
        return tracemalloc.get_traced_memory()[1] - before

    worst = 0
    tracemalloc.start()
    try:
        for data in frames(numbers, [*corpus(), bytes(LARGEST_BYTES), b"\x81\x00" * (LARGEST_BYTES // 2)], 3000):
            peak = peak_bytes(data)
            # Another thread's, such as the test runner's, count too: what is the frame's comes again.
            worst = max(worst, peak if peak < MEMORY_BYTES else min(peak_bytes(data) for _ in range(3)))
    finally:
        tracemalloc.stop()
    assert worst < MEMORY_BYTES


def test_the_attack_can_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("emu.framing.control.decode", lambda data: data[12:14] + data[99])
    with pytest.raises(AssertionError, match="IndexError.*frame "):
        attack(3, 50)
