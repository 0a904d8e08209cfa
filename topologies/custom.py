"""For stock Mininet: `.venv/bin/mn --custom topologies/custom.py --topo leaf_spine,leaves=2,spines=1`.

With more than one spine the fabric has loops, which Mininet's own switches need a spanning tree for.
"""

from __future__ import annotations

from topologies.leaf_spine import LeafSpineTopo
from topologies.line import LineTopo

topos = {"leaf_spine": LeafSpineTopo, "line": LineTopo}
