"""Ready-made scenario files; read by emu.scenario.builtin."""
