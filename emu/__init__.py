"""emu: a packet-level emulator for lossless RDMA fabrics. Public names are loaded when first used (PEP 562).

`emu.run` is a module: `from emu.run import run`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing's: what loads that takes as long as all the rest here

if TYPE_CHECKING:
    from typing import Any

    from emu.engine import Engine as Engine
    from emu.errors import EmuError as EmuError
    from emu.errors import InvariantBroken as InvariantBroken
    from emu.errors import MachineError as MachineError
    from emu.errors import ScenarioError as ScenarioError
    from emu.run import Options as Options
    from emu.scenario.load import load as load
    from emu.scenario.model import Scenario as Scenario

    __version__: str

_PLACES = {
    "Engine": "emu.engine",
    "EmuError": "emu.errors",
    "InvariantBroken": "emu.errors",
    "MachineError": "emu.errors",
    "Options": "emu.run",
    "Scenario": "emu.scenario.model",
    "ScenarioError": "emu.errors",
    "load": "emu.scenario.load",
}
__all__ = [  # noqa: F822 - `run` is a module, loaded as the others are
    "EmuError",
    "Engine",
    "InvariantBroken",
    "MachineError",
    "Options",
    "Scenario",
    "ScenarioError",
    "__version__",
    "load",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("fabric-emu")
    if name == "run":
        return import_module("emu.run")
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
