"""How fast a sender may send: one file an algorithm, behind one protocol."""
