"""PCI Express without I/O: what its packets are, how requests are split, what a link carries; times in picoseconds."""
