"""Congestion controls by name, and each one's presets; the first preset is the default."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emu.congestion.base import RateControl
from emu.congestion.dcqcn import Dcqcn
from emu.congestion.dcqcn_config import PRESETS
from emu.congestion.ib_cca import IbCca, IbCcaConfig
from emu.congestion.none import NoControl

Maker = Callable[[int], RateControl]
"""Line rate in bits per second to a new flow's rate control."""

BY_NAME: dict[str, dict[str, Maker]] = {
    "none": {"default": NoControl},
    "dcqcn": {name: partial(Dcqcn, config) for name, config in PRESETS.items()},
    "ib_cca": {"default": partial(IbCca, IbCcaConfig())},
}
