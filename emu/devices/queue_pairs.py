"""A NIC's queue pairs from first to last: attached, drained, broken, forgotten; what is finished is told."""

from __future__ import annotations

from emu.devices.host_side import HostSide
from emu.devices.nic_config import NicTiming
from emu.devices.queue_pair import QueuePairState
from emu.devices.transmit import Transmit
from emu.engine import Engine, Timer
from emu.transport.received import Received
from emu.transport.requester import Completion
from emu.transport.wc import WcStatus


class QueuePairs:
    """What a NIC does with queue pairs besides moving their frames."""

    __slots__ = ("_engine", "_next_qp", "_transmit", "host", "queue_pairs", "timing")

    _transmit: Transmit

    def __init__(self, engine: Engine, timing: NicTiming) -> None:
        self._engine = engine
        self._next_qp = 0x11  # 0 and 1 are management, a few more are left free as real NICs do
        self.timing = timing
        self.host: HostSide | None = None  # None: fixed legs stand for it
        self.queue_pairs: dict[int, QueuePairState] = {}

    def allocate_qp(self) -> int:
        """A queue pair number not used before."""
        number = self._next_qp
        self._next_qp += 1
        return number

    def attach(self, qp_num: int, state: QueuePairState) -> None:
        """Take a queue pair: from now on its frames are taken in, and what it posts is sent."""
        state.timer = Timer(self._engine, lambda: self._timed_out(state))
        self.queue_pairs[qp_num] = state
        if self.host is not None and state.memory is not None:
            self.host.attach(qp_num, state)

    def detach(self, qp_num: int) -> None:
        """Forget a queue pair: its frames are dropped from now on, and nothing comes of what it held."""
        state = self.queue_pairs.pop(qp_num, None)
        if state is None:
            return
        if state.timer is not None:
            state.timer.stop()
        state.is_broken = state.is_mute = True
        state.requester.flush()
        state.responder.flush()
        self._transmit.forget(state)
        if self.host is not None and state.memory is not None:
            self.host.detach(state)

    def break_off(self, state: QueuePairState) -> None:
        """The queue pair goes to the error state, and answers nothing more."""
        state.is_mute = True
        self._transmit.hush(state)
        self._flush(state)

    def drain(self, state: QueuePairState) -> None:
        """What the queue pair has begun to send goes on; all else waits for `go_on`."""
        if state.parked is None:
            state.parked = state.requester.withdraw()

    def go_on(self, state: QueuePairState) -> None:
        """It waits no longer."""
        parked, state.parked = state.parked or [], None
        for wqe in parked:
            state.requester.post(wqe)
        self._transmit.offer(state)

    def flush_receive(self, state: QueuePairState, received: Received) -> None:
        """A receive was posted to a queue pair in error."""
        self._received(state, [received])

    def _flush(self, state: QueuePairState) -> None:
        """The queue pair is in error: all that it holds comes back flushed, once; what it owes a peer still goes."""
        if not state.is_broken:
            state.is_broken = True
            if state.on_broken is not None:
                state.on_broken()
            parked, state.parked = state.parked or [], None
            flushed = state.requester.flush() + [(wqe, WcStatus.WR_FLUSH_ERR) for wqe in parked]
            if flushed:
                self._finish(state, flushed)
            self._received(state, state.responder.flush())

    def _take_answer(self, state: QueuePairState, done: list[Completion]) -> None:
        if state.armed_ps != state.requester.deadline_ps:
            self._arm(state)
        if done:
            self._finish(state, done)
        if state.requester.failed and not state.is_broken:
            self.break_off(state)
        self._transmit.offer(state)

    def _timed_out(self, state: QueuePairState) -> None:
        done = state.requester.on_deadline(self._engine.now_ps)
        self._arm(state)
        self._take_answer(state, done)

    def _arm(self, state: QueuePairState) -> None:
        deadline_ps = state.armed_ps = state.requester.deadline_ps
        if state.timer is None:
            return
        if deadline_ps < 0:
            state.timer.stop()
        else:
            state.timer.start(deadline_ps)

    def _finish(self, state: QueuePairState, done: list[Completion]) -> None:
        if self.host is not None and state.memory is not None:
            self.host.finished(state, done)
            return
        when_ps = self._engine.now_ps + self.timing.cqe_ps
        for completion in done:
            self._engine.at(when_ps, state.complete, completion)

    def _finished(self, state: QueuePairState) -> None:
        """Sending itself has finished work requests: nobody acknowledges them."""
        done = list(state.requester.finished)
        state.requester.finished.clear()
        self._finish(state, done)

    def _received(self, state: QueuePairState, receives: list[Received]) -> None:
        if self.host is not None and state.memory is not None:
            self.host.received(state, receives)
            return
        when_ps = self._engine.now_ps + self.timing.delivery_ps
        for received in receives:
            self._engine.at(when_ps, state.receive, received)
