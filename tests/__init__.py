"""The tests: they mirror the tree; what is no test here is a helper to them."""
