"""A capture as a person reads it: what is in it, whose check sums are right, flows, messages, frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emu.report.table import count_text, size_text, table, time_text

Decoded = Mapping[str, Any]
FLOWS = MESSAGES = 10  # shown of each
INFO_LIMIT = 100  # characters


def summary(decoded: Decoded) -> str:
    """What `emu decode` found, as text."""
    blocks = (_head, _flows, _messages, _rows, _left_out)
    return "\n\n".join("\n".join(lines) for lines in (list(block(decoded)) for block in blocks) if lines)


def _head(decoded: Decoded) -> Iterator[str]:
    interfaces = count_text(len(decoded["interfaces"]), "interface")
    span = time_text(decoded["last_ns"] - decoded["first_ns"])
    yield f"{decoded['file']}: {decoded['format']}, {count_text(decoded['frames'], 'frame')}, {interfaces}, {span}"
    if decoded["networks"]:
        yield "  " + ", ".join(f"{name} {count:,}" for name, count in decoded["networks"].items())
    for name in ("icrc", "vcrc"):
        counts = {verdict: count for verdict, count in decoded[name].items() if count}
        if counts:
            yield f"  {name.upper()}: " + ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
    if decoded["malformed"]:
        yield f"  {count_text(decoded['malformed'], 'frame')} too short to be any"


def _flows(decoded: Decoded) -> Iterator[str]:
    flows = decoded["flows"]
    if not flows:
        return
    rows = [("flow", "interface", "from", "to", "QP", "frames", "payload", "messages", "first to last", "to answer")]
    rows += [
        (
            str(flow["number"]),
            flow["interface"],
            flow["source"],
            flow["destination"],
            f"0x{flow['destination_qp']:x}",
            f"{flow['frames']:,}",
            size_text(flow["payload_bytes"]),
            f"{flow['messages']:,}" if flow["messages"] else "",
            _mean(flow["duration_ns"]),
            _mean(flow["answer_ns"]),
        )
        for flow in flows[:FLOWS]
    ]
    yield from table(rows, left=(1, 2, 3))
    yield from _rest(len(flows) - FLOWS, "flow")
    yield from _troubles(flows)


def _troubles(flows: list[Decoded]) -> Iterator[str]:
    for key, text in (
        ("icrc_bad", "with a wrong ICRC"),
        ("vcrc_bad", "with a wrong VCRC"),
        ("retransmitted", "sent again"),
        ("missing", "missing from the capture"),
        ("naks", "that refuse (NAK)"),
        ("marked", "marked for congestion (CE, FECN, BECN)"),
    ):
        numbers = [flow["number"] for flow in flows if flow[key]]
        if numbers:
            more = ", ..." if len(numbers) > FLOWS else ""
            where = ", ".join(map(str, numbers[:FLOWS])) + more
            count = sum(flow[key] for flow in flows)
            yield f"  {count_text(count, 'frame')} {text}: flow{'s' * (len(numbers) > 1)} {where}"


def _messages(decoded: Decoded) -> Iterator[str]:
    messages = decoded["messages"]
    if not messages:
        return
    rows = [("flow", "message", "frames", "PSNs", "payload", "first to last", "to answer", "")]
    rows += [
        (
            str(message["flow"]),
            message["operation"],
            f"{message['first_frame']}..{message['last_frame']}",
            f"{message['first_psn']}..{message['last_psn']}",
            size_text(message["payload_bytes"]),
            time_text(message["duration_ns"]),
            time_text(message["answer_ns"]) if message["answer_ns"] is not None else "-",
            _remark(message),
        )
        for message in messages[:MESSAGES]
    ]
    yield from table(rows, left=(1, 7))
    yield from _rest(len(messages) - MESSAGES + decoded["left_out"]["messages"], "message")


def _remark(message: Decoded) -> str:
    remarks = [] if message["complete"] else ["incomplete"]
    if message["retransmitted"]:
        remarks.append(f"{count_text(message['retransmitted'], 'frame')} sent again")
    return ", ".join(remarks)


def _rows(decoded: Decoded) -> Iterator[str]:
    if not decoded.get("rows"):
        return
    rows = [("frame", "time", "interface", "from", "to", "bytes", "ICRC", "VCRC", "")]
    rows += [
        (
            str(row["number"]),
            time_text(row["time_ns"] - decoded["first_ns"]),
            row["interface"],
            row["source"],
            row["destination"],
            str(row["frame_bytes"] or row["original_bytes"]),
            _verdict(row["icrc"]),
            _verdict(row["vcrc"]),
            row["info"][:INFO_LIMIT],
        )
        for row in decoded["rows"]
    ]
    yield from table(rows, left=(2, 3, 4, 6, 7, 8))
    yield from _rest(decoded["left_out"]["rows"], "frame")


def _left_out(decoded: Decoded) -> Iterator[str]:
    frames = decoded["left_out"]["frames_of_further_flows"]
    if frames:
        yield f"  {count_text(frames, 'frame')} of further flows: only counted"
    yield from (f"  warning: {text}" for text in decoded["warnings"])


def _mean(spread: Decoded) -> str:
    return time_text(spread["mean"]) if spread["count"] else "-"


def _verdict(verdict: str) -> str:
    return "" if verdict == "none" else verdict


def _rest(number: int, one: str) -> Iterator[str]:
    if number > 0:
        yield f"  and {count_text(number, one)} more"
