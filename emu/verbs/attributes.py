"""What `ibv_modify_qp` takes: which attributes in which move, and which values."""

from __future__ import annotations

from dataclasses import replace

from emu.addresses import Address
from emu.errors import VerbsError
from emu.transport.cm import MTU_CODES
from emu.verbs.state import QPAttr, QPState

LIMITS = {
    "dest_qp_num": (1 << 24) - 1,
    "rq_psn": (1 << 24) - 1,
    "sq_psn": (1 << 24) - 1,
    "qkey": (1 << 32) - 1,
    "min_rnr_timer": 31,
    "max_dest_rd_atomic": 255,
    "timeout": 31,
    "retry_cnt": 7,
    "rnr_retry": 7,
    "max_rd_atomic": 255,
}
AT_ANY_TIME = frozenset(("min_rnr_timer", "qkey"))
RETRIES = frozenset(("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic"))
CHANGEABLE = {
    (QPState.RTR, QPState.RTS): AT_ANY_TIME | RETRIES | {"sq_psn"},
    (QPState.RTS, QPState.RTS): AT_ANY_TIME,
    (QPState.SQE, QPState.RTS): AT_ANY_TIME,
    (QPState.SQD, QPState.RTS): AT_ANY_TIME,
    (QPState.SQD, QPState.SQD): AT_ANY_TIME | RETRIES,
}
"""What a queue pair that may receive can still be told, by where it is and goes to: IBTA vol. 1, table 91."""
SETTING_UP = (QPState.INIT, QPState.RTR)


def merged(attr: QPAttr, given: QPAttr | None, here: QPState, there: QPState, mtu_bytes: int) -> QPAttr:
    """The attributes after that move. Raises VerbsError for values that there are not, or that cannot change in it."""
    if given is None:
        return attr
    names = [name for name in given.__slots__ if getattr(given, name) is not None]
    for name in names:
        _check(name, getattr(given, name), mtu_bytes)
    if there not in SETTING_UP:
        may = CHANGEABLE.get((here, there), frozenset())
        for name in names:
            if name not in may and getattr(given, name) != getattr(attr, name):
                raise VerbsError(f"{name} cannot change as a queue pair goes from {here.name} to {there.name}")
    return replace(attr, **{name: getattr(given, name) for name in names})


def _check(name: str, value: object, mtu_bytes: int) -> None:
    if name == "dest":
        if not isinstance(value, Address):
            raise VerbsError(f"dest {value!r} is no address")
    elif name == "path_mtu_bytes":
        if value not in MTU_CODES or not isinstance(value, int) or value > mtu_bytes:
            sizes = ", ".join(str(size) for size in MTU_CODES if size <= mtu_bytes)
            raise VerbsError(f"path_mtu_bytes {value}: one of {sizes}")
    elif not isinstance(value, int) or not 0 <= value <= LIMITS[name]:
        raise VerbsError(f"{name} {value}: 0 to {LIMITS[name]}")
