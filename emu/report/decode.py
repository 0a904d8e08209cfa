"""A capture as a person reads it: what is in it, whose check sums are right, flows, messages, frames."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.report.table import count_text, size_text, table, time_text

Decoded = Mapping[str, Any]
FLOWS = MESSAGES = 10  # shown of each
INFO_LIMIT = 100  # characters
INDENT = "  "
ROW_HEAD = ("frame", "time", "interface", "from", "to", "bytes", "ICRC", "VCRC", "")
TROUBLES = (
    ("icrc_bad", "with a wrong ICRC"),
    ("vcrc_bad", "with a wrong VCRC"),
    ("retransmitted", "sent again"),
    ("missing", "missing from the capture"),
    ("marked", "marked for congestion (CE, FECN, BECN)"),
)


def summary(decoded: Decoded) -> Iterator[str]:
    """What `emu decode` found, as text, line by line."""
    separator: tuple[str, ...] = ()
    for block in (_head, _flows, _messages, _rows, _left_out):
        is_empty = True
        for line in block(decoded):
            if is_empty:
                yield from separator
            yield line
            is_empty, separator = False, ("",)


def json_lines(decoded: Decoded) -> Iterator[str]:
    """The same as `--json` prints it, entry by entry: what `report.output.to_json` makes, without all of it at once."""
    last = len(decoded) - 1
    yield "{"
    for place, (key, value) in enumerate(decoded.items()):
        end = "," if place < last else ""
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
            yield f"{INDENT}{json.dumps(key)}: ["
            yield from _list_lines(value)
            yield f"{INDENT}]{end}"
        else:
            text = "[]" if isinstance(value, Sequence) and not isinstance(value, str) else _indented(value, INDENT)
            yield f"{INDENT}{json.dumps(key)}: {text}{end}"
    yield "}"


def _list_lines(entries: Sequence[Any]) -> Iterator[str]:
    last, deeper = len(entries) - 1, 2 * INDENT
    for place, entry in enumerate(entries):
        yield deeper + _indented(entry, deeper) + ("," if place < last else "")


def _indented(value: Any, indent: str) -> str:
    return json.dumps(value, indent=len(INDENT), allow_nan=False).replace("\n", "\n" + indent)


def _head(decoded: Decoded) -> Iterator[str]:
    interfaces = count_text(len(decoded["interfaces"]), "interface")
    if decoded["left_out"]["frames_of_further_interfaces"]:
        interfaces += " and more"
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


def _troubles(flows: Sequence[Decoded]) -> Iterator[str]:
    frames: Counter[str] = Counter()
    numbers: dict[str, list[int]] = {key: [] for key, _ in TROUBLES}
    for flow in flows:
        for key, where in numbers.items():
            if flow[key]:
                frames[key] += flow[key]
                where.append(flow["number"])
    for key, text in TROUBLES:
        if frames[key]:
            more = ", ..." if len(numbers[key]) > FLOWS else ""
            where_text = ", ".join(map(str, numbers[key][:FLOWS])) + more
            yield f"  {count_text(frames[key], 'frame')} {text}: flow{'s' * (len(numbers[key]) > 1)} {where_text}"
    for flow in flows:
        if flow["naks"] or flow["rnrs"]:
            yield _refusals(flow)


def _refusals(flow: Decoded) -> str:
    """What a flow's answers refuse, in a line."""
    reasons = flow["nak_reasons"]
    said = list(reasons) if len(reasons) == 1 else [f"{count:,} {reason}" for reason, count in reasons.items()]
    naks = f"{count_text(flow['naks'], 'NAK')} ({', '.join(said)})" if flow["naks"] else ""
    both = [text for text in (naks, count_text(flow["rnrs"], "RNR NAK") if flow["rnrs"] else "") if text]
    whom = f", to flow {flow['answers_flow']}" if flow["answers_flow"] is not None else ""
    return f"  {' and '.join(both)}: flow {flow['number']}{whom}"


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
            size_text(message["response_bytes"] or message["payload_bytes"]),
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
    if message["refused"]:
        remarks.append(f"refused after {time_text(message['refused_ns'])}: {message['refused']}")
    elif message["naks"]:
        remarks.append(count_text(message["naks"], "NAK"))
    if message["rnrs"]:
        remarks.append(count_text(message["rnrs"], "RNR NAK"))
    if message["retransmitted"]:
        remarks.append(f"{count_text(message['retransmitted'], 'frame')} sent again")
    return ", ".join(remarks)


def _rows(decoded: Decoded) -> Iterator[str]:
    if not decoded.get("rows"):
        return
    widths = [0] * len(ROW_HEAD)
    for cells in _row_cells(decoded):
        widths = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
    blank = tuple(" " * width for width in widths)
    for cells in _row_cells(decoded):  # a second time, rather than all of them at once
        yield table([blank, cells], left=(2, 3, 4, 6, 7, 8))[1]
    yield from _rest(decoded["left_out"]["rows"], "frame")


def _row_cells(decoded: Decoded) -> Iterator[tuple[str, ...]]:
    yield ROW_HEAD
    for row in decoded["rows"]:
        yield (
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


def _left_out(decoded: Decoded) -> Iterator[str]:
    for what in ("interfaces", "flows"):
        frames = decoded["left_out"][f"frames_of_further_{what}"]
        if frames:
            yield f"  {count_text(frames, 'frame')} of further {what}: only counted"
    yield from (f"  warning: {text}" for text in decoded["warnings"])


def _mean(spread: Decoded) -> str:
    return time_text(spread["mean"]) if spread["count"] else "-"


def _verdict(verdict: str) -> str:
    return "" if verdict == "none" else verdict


def _rest(number: int, one: str) -> Iterator[str]:
    if number > 0:
        yield f"  and {count_text(number, one)} more"
