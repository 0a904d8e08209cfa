"""The smallest fabric, built and used once: what `emu doctor` tries, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from emu.errors import MachineError
from emu.lab import rootless
from emu.lab.holder import find_mnexec
from emu.lab.rights import remedy

TIMEOUT_S = 20.0
ATTEMPTS = ("mnexec", "veth")
Outcome = tuple[bool, str]


def attempt_all() -> dict[str, Outcome]:
    """By name of the attempt: whether it worked, and what was found or what is wrong."""
    code = f"import sys; sys.path[:] = {sys.path!r}\nfrom emu.lab.trial import main; main()"
    try:
        trial = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        outcomes: dict[str, list[object]] = json.loads(trial.stdout)
    except subprocess.TimeoutExpired:
        return dict.fromkeys(ATTEMPTS, (False, f"it does not end within {TIMEOUT_S:.0f} s: {remedy()}"))
    except ValueError:
        said = (trial.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return dict.fromkeys(ATTEMPTS, (False, f"it fails ({said}): {remedy()}"))
    return {name: (bool(ok), str(text)) for name, (ok, text) in outcomes.items()}


def main() -> None:
    """Try all, inside a user namespace if that is needed and possible, and print the outcomes as JSON."""
    if not rootless.is_privileged():
        try:
            rootless.enter()
        except OSError as error:
            outcome = (False, f"no namespaces ({error.strerror}): {remedy()}")
            print(json.dumps(dict.fromkeys(ATTEMPTS, outcome)))
            return
    print(json.dumps({"mnexec": _outcome(find_mnexec), "veth": _outcome(_cross_a_link)}))


def _outcome(attempt: Callable[[], str]) -> Outcome:
    try:
        return True, attempt()
    except MachineError as error:
        return False, str(error)
    except ImportError as error:
        return False, f"{error.name} is missing: make install"


def _cross_a_link() -> str:
    from emu.lab.lab import Lab  # noqa: PLC0415 - needs packages that may be missing
    from emu.topology import Kind, Link, Node, PortName, Topology  # noqa: PLC0415

    a, b = PortName("h0", 0), PortName("h1", 0)
    nodes = tuple(Node(port.node, Kind.HOST) for port in (a, b))
    with Lab(Topology(nodes, (Link("h0-h1", a, b, 1, 0),))) as lab:
        data = bytes(range(64))
        lab.socket_at(a).send(data)
        try:
            arrived = lab.socket_at(b).recv(1024)
        except BlockingIOError:
            arrived = b""
        if arrived != data:
            raise MachineError("a frame sent into a veth pair does not come out at once: use --wire memory")
        return f"a link in {lab.build_seconds * 1000:.0f} ms"


if __name__ == "__main__":
    main()
