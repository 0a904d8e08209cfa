from collections.abc import Callable
from logging import Logger

class MininetLogger(Logger):
    def __init__(self) -> None: ...
    def setLogLevel(self, levelname: str | None = None) -> None: ...

lg: MininetLogger
LEVELS: dict[str, int]

info: Callable[..., None]
output: Callable[..., None]
warn: Callable[..., None]
error: Callable[..., None]
debug: Callable[..., None]

def setLogLevel(levelname: str | None = None) -> None: ...
