"""Profiles: parameters with their sources; read by emu.scenario.profile."""
