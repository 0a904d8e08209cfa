"""What is in a capture: frames, verdicts, flows, messages, and each frame if asked for; what `emu decode` gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from emu.capture.entries import Entries, PackedEntries
from emu.capture.flow import Flow
from emu.capture.flows import FlowTable, Sighting
from emu.capture.messages import SeenMessage
from emu.capture.record import Record
from emu.capture.seen import KIND_MASK, NAK, RNR_NAK
from emu.capture.tlps import told
from emu.crc import ICRC_BYTES, VCRC_BYTES
from emu.errors import WireError
from emu.framing.dissect import dissect
from emu.framing.dissection import Dissection
from emu.framing.summary import nak_text
from emu.opcodes import NAMES

ROW_LIMIT = 100_000  # frames and messages listed, unless it is said otherwise
INTERFACE_LIMIT = 65_536  # listed by name; frames on further ones are counted together
READ = "Read Request"
RDMA = ("rocev2", "rocev1", "native")
TLP = "tlp"
VERDICTS = ("ok", "bad", "unchecked")


class Summary:
    """Takes records one by one.

    Memory: up to `flows.FLOW_LIMIT` flows, INTERFACE_LIMIT interfaces, and `limit` messages and rows.
    """

    def __init__(self, *, with_rows: bool, limit: int = ROW_LIMIT) -> None:
        self._rows = PackedEntries() if with_rows else None
        self._limit = limit
        self._messages: list[tuple[int, SeenMessage]] = []
        self._more_messages = 0
        self._flows = FlowTable(self._begin)
        self._interfaces: Counter[str] = Counter()
        self._frames_elsewhere = 0  # on interfaces beyond the limit
        self._networks: Counter[str] = Counter()
        self._verdicts = {"icrc": Counter[str](), "vcrc": Counter[str]()}
        self._malformed = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self.frames = 0

    def add(self, records: Iterable[Record]) -> None:
        """Take all of them; what the records' source raises goes on, what came before it counts."""
        for record in records:
            self._add(record)

    def result(self) -> dict[str, Any]:
        """The keys of docs/captures.md; the lists are made entry by entry while they are read."""
        self._flows.finish()
        result: dict[str, Any] = {
            "frames": self.frames,
            "rdma_frames": sum(self._networks[network] for network in RDMA),
            "malformed": self._malformed,
            "first_ns": self.first_ns,
            "last_ns": self._last_ns,
            "networks": dict(sorted(self._networks.items())),
            "interfaces": Entries(list(self._interfaces.items()), _interface_entry),
            **{name: {each: counts[each] for each in VERDICTS} for name, counts in self._verdicts.items()},
            "flows": Entries(list(self._flows), _flow_entry),
            "messages": Entries(self._messages, self._message_entry),
            "left_out": {
                "frames_of_further_interfaces": self._frames_elsewhere,
                "frames_of_further_flows": self._flows.left_out,
                "messages": self._more_messages,
                "rows": max(0, self.frames - len(self._rows)) if self._rows is not None else 0,
            },
        }
        return result if self._rows is None else result | {"rows": self._rows}

    def conversations(self) -> tuple[list[Flow], list[tuple[int, SeenMessage]], int]:
        """The capture being over: its flows, its messages with their flows' numbers, and how many more there are."""
        self._flows.finish()
        return list(self._flows), self._messages, self._more_messages

    @property
    def first_ns(self) -> int:
        """When the first frame was seen; 0 if none was."""
        return self._first_ns or 0

    def _message_entry(self, item: tuple[int, SeenMessage]) -> dict[str, Any]:
        number, message = item
        return _message_entry(number, message, is_clear=number in self._flows.answered)

    def _begin(self, flow_number: int, message: SeenMessage) -> None:
        if len(self._messages) < self._limit:
            self._messages.append((flow_number, message))
        else:
            self._more_messages += 1

    def _add(self, record: Record) -> None:
        self.frames += 1
        if record.interface in self._interfaces or len(self._interfaces) < INTERFACE_LIMIT:
            self._interfaces[record.interface] += 1
        else:
            self._frames_elsewhere += 1
        if self._first_ns is None or record.time_ns < self._first_ns:
            self._first_ns = record.time_ns
        self._last_ns = max(self._last_ns, record.time_ns)
        try:
            frame = dissect(record.link_type, record.data, record.original_bytes)
        except WireError as error:
            self._malformed += 1
            frame = Dissection(network="other", info=f"malformed: {error}")
        if frame.network == TLP:
            frame = told(frame, cut=record.original_bytes > len(record.data))
        self._networks[frame.network] += 1
        self._verdicts["icrc"][frame.icrc] += 1
        self._verdicts["vcrc"][frame.vcrc] += 1
        payload_bytes = _payload_bytes(record, frame)
        if frame.network in RDMA and frame.opcode is not None:
            self._flows.take(Sighting(self.frames, record.time_ns, record.interface, frame, payload_bytes))
        if self._rows is not None and len(self._rows) < self._limit:
            self._rows.append(_row(self.frames, record, frame, payload_bytes))


def _payload_bytes(record: Record, frame: Dissection) -> int:
    """Of the payload as it was on the wire: a snap length cuts the frame from its end."""
    length = len(frame.payload)
    if TLP in frame.headers:
        kind, _, said, *_ = frame.headers[TLP]
        return 0 if kind == "MRd" else int(said)
    if frame.icrc != "unchecked":
        return length
    cut = record.original_bytes - len(record.data)
    behind = frame.pad_bytes + ICRC_BYTES + (VCRC_BYTES if frame.network == "native" else 0)
    return length + max(0, cut - behind)


def _flow_entry(flow: Flow) -> dict[str, Any]:
    asked, answers, stream = flow.answered, flow.answers, flow.stream
    rnrs = sum(count for syndrome, count in flow.refusals.items() if syndrome & KIND_MASK == RNR_NAK)
    return {
        "number": flow.number,
        **flow.key._asdict(),
        "source_port": flow.source_port,
        "frames": flow.frames,
        "frame_bytes": flow.frame_bytes,
        "payload_bytes": flow.payload_bytes,
        "first_ns": flow.first_ns,
        "last_ns": flow.last_ns,
        "opcodes": {NAMES[opcode]: count for opcode, count in sorted(flow.opcodes.items())},
        "icrc_bad": flow.icrc_bad,
        "vcrc_bad": flow.vcrc_bad,
        "naks": sum(flow.refusals.values()) - rnrs,
        "rnrs": rnrs,
        "nak_reasons": _reasons(flow.refusals),
        "marked": flow.marked,
        "missing": stream.missing if stream is not None else 0,
        "retransmitted": stream.retransmitted if stream is not None else 0,
        "messages": flow.messages,
        "complete": flow.complete,
        "message_bytes": flow.message_bytes,
        "duration_ns": flow.duration.summary(),
        "answer_ns": flow.answer.summary(),
        "answers_flow": asked.number if asked is not None else None,
        "answered_by_flow": answers.number if answers is not None else None,
    }


def _interface_entry(item: tuple[str, int]) -> dict[str, Any]:
    return {"name": item[0], "frames": item[1]}


def _message_entry(flow_number: int, message: SeenMessage, *, is_clear: bool) -> dict[str, Any]:
    """`is_clear`: whether it is clear which flow answers this one."""
    answered_ns = message.answered_ns if is_clear else None
    return {
        "flow": flow_number,
        "operation": message.operation,
        "first_frame": message.first_frame,
        "last_frame": message.last_frame,
        "first_psn": message.first_psn,
        "last_psn": message.last_psn,
        "first_ns": message.first_ns,
        "last_ns": message.last_ns,
        "duration_ns": message.last_ns - message.first_ns,
        "payload_bytes": message.payload_bytes,
        "dma_bytes": message.dma_bytes,
        "size_bytes": message.size_bytes,
        "immediate": message.immediate,
        "complete": message.complete,
        "missing": message.missing,
        "retransmitted": message.retransmitted,
        "naks": message.naks if is_clear else None,
        "rnrs": message.rnrs if is_clear else None,
        "answered_frame": message.answered_frame if is_clear else None,
        "answer_ns": None if answered_ns is None else answered_ns - message.first_ns,
        "first_response_ns": _since(message, message.first_response_ns) if is_clear else None,
        "response_bytes": message.response_bytes if is_clear and message.operation.endswith(READ) else None,
        "refused": nak_text(message.refusal) if is_clear and message.refusal is not None else None,
        "refused_ns": _since(message, message.refused_ns) if is_clear else None,
    }


def _since(message: SeenMessage, time_ns: int | None) -> int | None:
    """How long after its first packet."""
    return None if time_ns is None else time_ns - message.first_ns


def _reasons(refusals: Mapping[int, int]) -> dict[str, int]:
    """NAKs by what they say."""
    naks = sorted((syndrome, count) for syndrome, count in refusals.items() if syndrome & KIND_MASK == NAK)
    return {nak_text(syndrome): count for syndrome, count in naks}


def _row(number: int, record: Record, frame: Dissection, payload_bytes: int) -> dict[str, Any]:
    return {
        "number": number,
        "time_ns": record.time_ns,
        "interface": record.interface,
        "network": frame.network,
        "source": frame.source,
        "destination": frame.destination,
        "captured_bytes": len(record.data),
        "original_bytes": record.original_bytes,
        "frame_bytes": frame.frame_bytes,
        "opcode": frame.opcode,
        "opcode_name": frame.opcode_name,
        "destination_qp": frame.destination_qp,
        "psn": frame.psn,
        "ack_request": frame.ack_request,
        "solicited": frame.solicited,
        "payload_bytes": payload_bytes,
        "pad_bytes": frame.pad_bytes,
        "source_port": frame.source_port,
        "destination_port": frame.destination_port,
        "vlan": [list(tag) for tag in frame.vlan],
        "dscp": frame.dscp,
        "ecn": frame.ecn,
        "fecn": frame.fecn,
        "becn": frame.becn,
        "headers": {name: _fields(header) for name, header in frame.headers.items()},
        "icrc": frame.icrc,
        "vcrc": frame.vcrc,
        "info": frame.info,
    }


def _fields(header: tuple[Any, ...]) -> Any:
    """A header's fields by name, bytes as hexadecimal text."""
    names = getattr(header, "_fields", None) or [str(place) for place in range(len(header))]
    values = (value.hex() if isinstance(value, bytes) else value for value in header)
    return dict(zip(names, values, strict=True))
