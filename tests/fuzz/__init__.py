"""Hostile bytes against every parser and every machine: `make fuzz`, and in the suite."""
