"""One run, from scenario to result: built (`assembly`), driven, checked (`conservation`), told (`outcome`)."""

from emu.run.drive import WIRES as WIRES
from emu.run.drive import Options as Options
from emu.run.drive import run as run
