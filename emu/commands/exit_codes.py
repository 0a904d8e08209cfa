"""What a command's exit code says (docs/commands.md)."""

OK = 0
MISTAKE = 2  # in what was asked for
MACHINE = 3  # this machine lacks something
EXPECTATION_FAILED = 4
INCOMPLETE = 5  # a message failed, or `until` came first
BUG = 70
INTERRUPTED = 130

HELP = """\
exit codes:
  0    done
  2    a mistake in what was asked for
  3    this machine lacks something; the message names the remedy
  4    an `expect` of the scenario does not hold
  5    traffic did not complete: a message failed, or `until` came first
  70   a bug of ours
  130  ended by Ctrl-C, SIGTERM or SIGHUP; results so far are written, marked "complete": false
"""
