"""How frames look on a wire: bytes to Frame and back by struct, and the wire time they take."""
