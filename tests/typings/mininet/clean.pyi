from collections.abc import Callable
from typing import Any

class Cleanup:
    @classmethod
    def cleanup(cls) -> None: ...
    @classmethod
    def addCleanupCallback(cls, callback: Callable[[], Any]) -> None: ...
