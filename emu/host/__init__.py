"""What lies between a program and its NIC: PCI Express links, forwarders, memories, and those who read and write them.

A device hands packets (emu/pcie/tlp.py) to a link; the link calls the far end when it can act on them.
"""
