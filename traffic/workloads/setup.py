"""Queue pairs that are connected as the run goes on, by an exchange of REQ, REP and RTU over QP1."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from emu.verbs import QP, QPState
from emu.verbs.cm import Accept, CmConfig, Managers, NotConnected, Reject, Request

SERVICE = 0x0106_0000  # of RDMA over TCP ports (IBTA, IP CM service): each queue pair listened for has the next

Connect = Callable[[], Coroutine[Any, Any, bool]]


class Exchange:
    """What connects a workload's queue pairs; results tell how long it took, and why some were not."""

    def __init__(self, config: CmConfig) -> None:
        self._config = config
        self._managers = Managers()
        self._services = 0

    def between(self, qp: QP, far: QP) -> Connect:
        """Let `far` wait for `qp`; it takes receives now. Await what is returned: whether they are connected."""
        context = far.pd.context
        far.modify(QPState.INIT)
        service = SERVICE + self._services
        self._services += 1

        def accept(_: Request) -> Accept | Reject:
            return Accept(qp=far) if far.state is QPState.INIT else Reject()

        self._managers.of(context).listen(service, accept)
        return partial(self._connect, qp, far, service)

    async def _connect(self, qp: QP, far: QP, service: int) -> bool:
        manager = self._managers.of(qp.pd.context)
        try:
            await manager.connect(qp, far.pd.context.address, service, config=self._config)
        except NotConnected:
            return False
        return True
