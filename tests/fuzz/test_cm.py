"""Hostile management datagrams: the codec gives a message or a WireError; a manager that listens survives them all."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from emu import opcodes
from emu.errors import WireError
from emu.frame import Frame
from emu.transport.cm import GSI_QKEY, GSI_QP, MAD_BYTES, Mad, decode, encode
from emu.transport.cm_message import ATTRIBUTE_OF, Drep, Dreq, Message, Path, Rej, Rep, Req, Rtu
from emu.transport.psn import PSN_MASK
from emu.units import US
from emu.verbs import QPType
from emu.verbs.cm import Accept, Managers, Reject, Request
from tests.fuzz.world import World, expected

SERVICE = 0x1234
MADS = 20_000
EPISODES, EPISODE_MADS = 12, 150
HEADER_BYTES = 24


def messages(numbers: random.Random, known: tuple[int, ...] = ()) -> Iterator[Mad]:
    """Well-formed ones, with numbers of communications that may be known."""
    ids = (0, 1, 2, 2**32 - 1, *known)
    while True:
        here, there = numbers.choice(ids), numbers.choice(ids)
        req = Req(
            local_id=numbers.getrandbits(32) if numbers.random() < 0.7 else here,
            service_id=SERVICE if numbers.random() < 0.9 else 5,
            ca_guid=bytes(8),
            qpn=numbers.getrandbits(24),
            starting_psn=numbers.getrandbits(24),
            responder_resources=numbers.getrandbits(8),
            initiator_depth=numbers.getrandbits(8),
            remote_timeout=numbers.getrandbits(5),
            local_timeout=numbers.getrandbits(5),
            service=numbers.getrandbits(2) if numbers.random() < 0.2 else 0,
            retry_cnt=numbers.getrandbits(3),
            mtu_code=numbers.getrandbits(4) if numbers.random() < 0.2 else 1,
            rnr_retry=numbers.getrandbits(3),
            max_cm_retries=numbers.getrandbits(4),
            primary=Path(sl=numbers.getrandbits(4), ack_timeout=numbers.getrandbits(5)),
        )
        rep = Rep(
            local_id=here,
            remote_id=there,
            qpn=numbers.getrandbits(24),
            starting_psn=numbers.getrandbits(24),
            responder_resources=numbers.getrandbits(8),
            initiator_depth=numbers.getrandbits(8),
            rnr_retry=numbers.getrandbits(3),
            ca_guid=bytes(8),
        )
        others: tuple[Message, ...] = (
            rep,
            Rtu(local_id=here, remote_id=there),
            Rej(local_id=here, remote_id=there, rejected=numbers.getrandbits(2), reason=numbers.getrandbits(16)),
            Dreq(local_id=here, remote_id=there, remote_qpn=numbers.getrandbits(24)),
            Drep(local_id=here, remote_id=there),
        )
        yield Mad(numbers.getrandbits(64), req if numbers.random() < 0.4 else numbers.choice(others))


def mangled(numbers: random.Random, data: bytes) -> bytes:
    """The same, mostly: bits turned behind the header or in it, or cut."""
    changed = bytearray(data)
    for _ in range(numbers.choice((0, 0, 1, 3, 20))):
        changed[numbers.randrange(HEADER_BYTES if numbers.random() < 0.05 else 0, len(changed))] ^= (
            1 << numbers.randrange(8)
        )
    return bytes(changed[: numbers.randrange(MAD_BYTES)]) if numbers.random() < 0.02 else bytes(changed)


def breaking(numbers: random.Random, world: World) -> bytes:
    """What a queue pair of a reliable connection breaks by, whether it may send yet or not: a Middle of nothing."""
    number, state = numbers.choice(list(world.nic.queue_pairs.items()))
    here, there = world.victim.context.address, world.peer.context.address
    envelope = world.peer.context.envelopes(there, here, 1, number, None)[0]
    return world.framing.encode(Frame(envelope, opcodes.SEND_MIDDLE, expected(state) & PSN_MASK))


def test_the_codec_takes_any_bytes() -> None:
    numbers = random.Random(12)
    made = messages(numbers)
    outcomes: Counter[str] = Counter()
    for _ in range(MADS):
        data = mangled(numbers, encode(next(made))) if numbers.random() < 0.9 else numbers.randbytes(MAD_BYTES)
        try:
            mad = decode(data)
        except WireError as error:
            assert 0 < len(str(error)) < 200
            outcomes["refused"] += 1
            continue
        outcomes[ATTRIBUTE_OF[type(mad.message)].name] += 1
        assert decode(encode(mad)) == mad
    assert len(outcomes) == 7
    assert min(outcomes.values()) > MADS / 50


@pytest.mark.parametrize("episode", range(EPISODES))
def test_a_manager_that_listens_survives(episode: int) -> None:
    numbers = random.Random(f"cm/{episode}")
    world = World(numbers)
    managers, victim, peer = Managers(), world.victim, world.peer
    manager = managers.of(victim.context)
    granted: list[object] = []

    def accept(request: Request) -> Accept | Reject:
        if len(granted) > 20:
            return Reject()
        granted.append(request)
        return Accept(qp=victim.queue_pair(numbers.choice((QPType.RC, QPType.RC, QPType.UC))))

    manager.listen(SERVICE, accept)
    envelope = peer.context.envelopes(peer.context.address, victim.context.address, 1, GSI_QP, None)[0]
    data = b""
    try:
        for _ in range(EPISODE_MADS):
            made = messages(
                numbers, tuple(manager._connections) + tuple(each.remote_id for each in manager._asked.values())
            )
            data = mangled(numbers, encode(next(made)))
            frame = Frame(envelope, opcodes.UD | opcodes.SEND_ONLY, 0, data)
            frame.extension = (GSI_QKEY, GSI_QP)
            world.take(world.framing.encode(frame))
            if numbers.random() < 0.2:
                world.take(breaking(numbers, world))
            world.go_on(numbers.choice((0, US, 50 * US)))
        assert len(manager._connections) <= 21
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}; episode {episode}: {data.hex()}") from error
    assert manager.gsi.received > EPISODE_MADS / 2
    assert granted
