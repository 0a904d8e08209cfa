"""`python -m emu` is the command `emu`."""

from __future__ import annotations

import sys

from emu.start import main

if __name__ == "__main__":
    sys.exit(main())
