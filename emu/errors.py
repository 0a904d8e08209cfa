"""The kinds of error we raise on purpose, and the exit code each ends a command with."""


class EmuError(Exception):
    """Base of every error raised on purpose; `exit_code` is what the command line returns."""

    exit_code = 2


class ScenarioError(EmuError):
    """What was asked for cannot be built: a mistake in a file, an option or a value."""


class MachineError(EmuError):
    """This machine lacks something the run needs; the message names the remedy."""

    exit_code = 3


class WireError(EmuError):
    """Bytes that are not a frame we know (the peer's mistake, never ours)."""


class VerbsError(EmuError):
    """A verb was called in a way libibverbs would refuse (EINVAL, ENOMEM)."""


class InvariantBroken(EmuError):  # noqa: N818 - a state of affairs, not a mistake of the user's
    """A bug in the emulator: bytes went missing, a lossless queue overran, time ran backwards."""

    exit_code = 70
