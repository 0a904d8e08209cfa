"""What congestion did to each run, as text: a table of all runs, then each one's queues, pauses, waits and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from emu.report.held_back import alarms, fairness, is_loud
from emu.report.inputs import CONGESTION_RESTS_ON, inputs_table
from emu.report.spark import sparkline
from emu.report.table import share_text, size_text, table, time_text
from emu.report.text import arrow, shortfall

Result = Mapping[str, Any]
SHOWN_LINKS = 5


class Observed(NamedTuple):
    """One run, and what is told of it besides its result. Times in nanoseconds."""

    name: str
    result: Result
    ideal_ns: float  # the busiest host link's time for its data frames, back to back
    bottleneck: str  # the link's direction whose queue was longest
    curve: Sequence[int]  # bytes in that queue, the most in each step
    step_ns: float
    inputs: Mapping[str, Mapping[str, str]]  # by path: value, kind, source
    first_cut_ns: float | None = None  # when a flow's rate was first seen to have fallen; None: never
    all_sent_ns: float = 0.0  # when a source of traffic was last seen to have sent something


def congestion_text(runs: Sequence[Observed]) -> str:
    """The whole report."""
    blocks = [_head(runs), _table(runs)]
    blocks += [_run(run) for run in runs]
    blocks.append(inputs_table({run.name: _in_use(run) for run in runs}, CONGESTION_RESTS_ON))
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines)


def completion_ns(result: Result) -> float:
    """From the first post to the last message visible, of all flows; 0 where none came to an end."""
    flows = [flow for flow in result["flows"] if flow["messages"]]
    if not flows:
        return 0.0
    return float(max(flow["finish_ns"] for flow in flows) - min(flow["start_ns"] for flow in flows))


def worst_queue(result: Result) -> str:
    """The direction of a link whose queue was longest; the first of several."""
    return str(max(result["links"], key=lambda link: link["max_queue_bytes"])["name"])


def _in_use(run: Observed) -> Mapping[str, Mapping[str, str]]:
    """Its inputs without those of mechanisms that it does not have."""
    fabric = run.result["scenario"]["fabric"]
    unused = [*CONGESTION_RESTS_ON["credits"]] if fabric["flow_control"] != "credits" else []
    unused += CONGESTION_RESTS_ON["pfc"] if fabric["flow_control"] != "pfc" else ()
    unused += ("fabric.cc_preset", "fabric.cnp") if fabric["congestion_control"] == "none" else ()
    return {path: entry for path, entry in run.inputs.items() if path not in unused}


def _head(runs: Sequence[Observed]) -> Iterator[str]:
    scenario = runs[0].result["scenario"]
    topology = scenario["fabric"]["topology"]
    shape = ", ".join(f"{key} {value}" for key, value in topology.items() if isinstance(value, (int, str)))
    for traffic in scenario["traffic"]:
        yield ", ".join(f"{key} {_plain(value)}" for key, value in traffic.items())
    yield f"{shape}; wire {runs[0].result['wire']}, seed {runs[0].result['seed']}"


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _times_ideal(run: Observed) -> str:
    return f"{completion_ns(run.result) / run.ideal_ns:.3f}" if run.ideal_ns and completion_ns(run.result) else "-"


def _time(value_ns: float) -> str:
    """`-` where nothing was delivered."""
    return time_text(value_ns) if value_ns else "-"


def _sum(key: str) -> Callable[[Observed], str]:
    def text(run: Observed) -> str:
        total = sum(link[key] for link in run.result["links"])
        return time_text(total) if key.endswith("_ns") else f"{total:,}"

    return text


def _jain(run: Observed) -> str:
    value = run.result["fairness"]["jain"]
    return "-" if value is None else f"{value:.3f}"


def _first(key: str) -> Callable[[Observed], str]:
    def text(run: Observed) -> str:
        value_ns = run.result["congestion"][key]
        return "-" if value_ns is None else time_text(value_ns)

    return text


ROWS: tuple[tuple[str, Callable[[Observed], str]], ...] = (
    ("completion", lambda run: _time(completion_ns(run.result))),
    ("ideal: busiest host link, data back to back", lambda run: _time(run.ideal_ns)),
    ("  completion in times of it", _times_ideal),
    ("p99 message", lambda run: _time(run.result["p99"]["latency_ns"])),
    ("fairness (Jain)", _jain),
    ("first pause", _first("first_pause_ns")),
    ("pause frames", _sum("pause_frames")),
    ("paused, all links together", _sum("paused_ns")),
    ("waited for credits, all links together", _sum("credit_wait_ns")),
    ("first mark (ECN, FECN)", _first("first_mark_ns")),
    ("frames marked", _sum("ecn_marked")),
    ("notifications (CNP, BECN)", lambda run: f"{run.result['frames']['cnps']:,}"),
    ("first rate cut", lambda run: time_text(run.first_cut_ns) if run.first_cut_ns is not None else "-"),
    ("sent again", lambda run: f"{sum(flow['retransmitted'] for flow in run.result['flows']):,}"),
    ("dropped, lossless", lambda run: f"{run.result['drops']['lossless']:,}"),
    ("dropped, lossy", lambda run: f"{run.result['drops']['lossy']:,}"),
)


def _table(runs: Sequence[Observed]) -> Iterator[str]:
    yield from table([("", *(run.name for run in runs)), *((name, *map(text, runs)) for name, text in ROWS)])


def _run(run: Observed) -> Iterator[str]:
    short = shortfall(run.result)
    yield run.name + (f" - INCOMPLETE: {short}" if short else "")
    yield from alarms(run.result)
    yield from (f"  warning: {text}" for text in run.result["warnings"] if not is_loud(text))
    if run.result["p99"]["sentence"]:
        yield f"  {run.result['p99']['sentence']}"
    yield from (f"  {line}" for line in (*fairness(run.result), *_victims(run.result), *_too_late(run)))
    yield from _queues(run)
    yield from _held(run)
    yield from _curve(run)


def _victims(result: Result) -> Iterator[str]:
    for flow in result["flows"]:
        if flow["kind"] == "victim" and flow["messages"]:
            yield (
                f"The victim ({flow['src']} to {flow['dst']}) took {time_text(flow['fct_ns'])},"
                f" {flow['slowdown']:.1f} times what it takes alone."
            )


def _too_late(run: Observed) -> Iterator[str]:
    if run.first_cut_ns is not None and run.first_cut_ns > run.all_sent_ns:
        control = run.result["scenario"]["fabric"]["congestion_control"]
        yield (
            f"{control} came too late: the first rate was cut at {time_text(run.first_cut_ns)},"
            f" and all was sent at {time_text(run.all_sent_ns)}."
        )


def _queues(run: Observed) -> Iterator[str]:
    links = _worst(run.result["links"], "max_queue_bytes")
    rows = [("longest queues", "bytes", "marked", "utilization")]
    rows += [
        (arrow(link), f"{link['max_queue_bytes']:,}", f"{link['ecn_marked']:,}", share_text(link["utilization"]))
        for link in links
    ]
    yield from table(rows) if links else ("  no queue anywhere",)


def _held(run: Observed) -> Iterator[str]:
    """The links that were paused, or waited for credits, for longest."""
    for key, what, frames, sent in (
        ("paused_ns", "longest paused", "pause_frames", "pause frames from its far end"),
        ("credit_wait_ns", "longest without credits", "credit_frames", "credit frames from its far end"),
    ):
        links = _worst(run.result["links"], key)
        if links:
            back = {(link["to"], link["from"], _number(link)): link[frames] for link in run.result["links"]}
            rows = [(what, "time", sent)]
            rows += [
                (arrow(link), time_text(link[key]), f"{back[link['from'], link['to'], _number(link)]:,}")
                for link in links
            ]
            yield from table(rows)


def _number(link: Result) -> str:
    """Which of several parallel links it is."""
    return str(link["name"]).partition("#")[2]


def _worst(links: Sequence[Result], key: str) -> list[Result]:
    return sorted((link for link in links if link[key]), key=lambda link: -link[key])[:SHOWN_LINKS]


def _curve(run: Observed) -> Iterator[str]:
    top = max(run.curve, default=0)
    if top:
        span_ns = min(len(run.curve) * run.step_ns, run.result["virtual_ns"])
        yield f"  {run.bottleneck} over time: the queue as looked at, darkest {size_text(top)}"
        yield f"  0 |{sparkline(run.curve)}| {time_text(span_ns)}"
