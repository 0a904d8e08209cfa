"""One module a command of `emu`, each with `configure(parser)` and `execute(arguments)`."""
