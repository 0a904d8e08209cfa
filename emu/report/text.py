"""A run's result as a person reads it: what happened, where the time went, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.report.held_back import alarms, is_loud, waits
from emu.report.host_inputs import Way, parts_of
from emu.report.inputs import by_path, named, rests_on
from emu.report.table import count_text, share_text, size_text, table, time_text

Result = Mapping[str, Any]
LINKS = FLOWS = 8  # shown of each
HELD_BACK = {"paused_ns": "paused", "credit_wait_ns": "credit wait", "ecn_marked": "marked"}
SUMMARY = ("min", "mean", "p50", "p99", "max")


def summary(result: Result) -> str:
    """The result of one run as text."""
    blocks = (_head, alarms, _latencies, _breakdown, waits, _links, _flows, _expectations, _warnings, _cost)
    texts = (list(block(result)) for block in blocks)
    return "\n\n".join("\n".join(lines) for lines in texts if lines)


def shortfall(result: Result) -> str:
    """Why its traffic did not complete, or nothing if it did."""
    messages = result["messages"]
    left = messages["posted"] - messages["completed"] - messages["failed"]
    reasons = []
    if result.get("interrupted"):
        reasons.append("interrupted")
    elif not result["complete"]:
        reasons.append(f"the run ended at {time_text(result['virtual_ns'])} before its traffic did")
    connections = result["connections"]
    if connections["failed"]:
        reasons.append(f"{count_text(connections['failed'], 'connection')} not made ({connections['failures'][0]})")
    if messages["failed"]:
        reasons.append(f"{count_text(messages['failed'], 'message')} failed")
    if reasons and left:
        reasons.append(f"{count_text(left, 'message')} still on the way")
    return ", ".join(reasons)


def failed_expectations(result: Result) -> list[str]:
    """One line for each expectation that does not hold."""
    return [f"does not hold: {each['text']} (it is {each['value']})" for each in result["expect"] if not each["holds"]]


def _head(result: Result) -> Iterator[str]:
    scenario, messages = result["scenario"], result["messages"]
    fabric = scenario["fabric"]
    topology = " ".join(
        f"{key}={value}" for key, value in fabric["topology"].items() if key != "kind" and isinstance(value, (int, str))
    )
    yield f"{scenario['name']}: {fabric['topology']['kind']} {topology}".rstrip()
    yield f"  {fabric['profile']} over {result['wire']}, seed {result['seed']}"
    connections = result["connections"]
    if connections["made"]:
        mean = time_text(connections["setup_ns"]["mean"])
        yield f"  {count_text(connections['made'], 'connection')} made over QP1, each in {mean} on average"
    end = shortfall(result)
    yield (
        f"  {count_text(messages['completed'], 'message')} completed of {messages['posted']:,} posted,"
        f" {size_text(messages['bytes'])} in {time_text(result['virtual_ns'])} of virtual time"
        + (f" - INCOMPLETE: {end}" if end else "")
    )


def _latencies(result: Result) -> Iterator[str]:
    if not result["breakdown_ps_total"]["total"]:
        return
    rows: list[tuple[str, ...]] = [("", *SUMMARY, "")]
    for name, values, meaning in (
        ("fabric latency", result["fabric_latency_ns"], "first bit out to last bit in"),
        ("message latency", result["messages"]["latency_ns"], "posted to visible at the destination"),
        ("completion latency", result["messages"]["completion_latency_ns"], "posted to completion seen"),
    ):
        rows.append((name, *(time_text(values[key]) for key in SUMMARY), meaning))
    yield from table(rows, left=(0, len(SUMMARY) + 1))


def _breakdown(result: Result) -> Iterator[str]:
    means, total = result["breakdown_ns"], result["breakdown_ps_total"]["total"]
    if not total:
        return
    inputs, way = by_path(result["provenance"]), _way(result)
    rows: list[tuple[str, ...]] = [("where the time went", "mean", "share", "rests on")]
    for part, value in means.items():
        if part != "total" and (value or part in ("serialization", "propagation", "switching")):
            share = result["breakdown_ps_total"][part] / total
            paths = [f"host.{path}" for path in parts_of(way)["NIC"]] if part == "nic" and way is not None else None
            said = rests_on(part, inputs) if paths is None else named(paths, inputs)
            rows.append((part.replace("_", " "), time_text(value), share_text(share), said))
        if part == "host" and way is not None:
            rows += _host_steps(result, way)
    rows.append(("total", time_text(means["total"]), share_text(1), ""))
    yield from table(rows, left=(0, 3))


def _way(result: Result) -> Way | None:
    """How the run's hosts send, where they have a path to their NICs."""
    host = result["scenario"]["host"]
    if host["path"] == "none":
        return None
    pcie, queues, cpu = host["pcie"], host["queues"], host["cpu"]
    return Way(
        host["path"],
        host["gpu_direct"],
        pcie["attach"],
        queues["nic_handler"],
        queues["nic_buf_memtype"],
        cpu["blueflame"],
    )


def _host_steps(result: Result, way: Way) -> Iterator[tuple[str, ...]]:
    """What the host's part is made of; what every crossing of the PCIe tree rests on is said once, at the end."""
    inputs, total = by_path(result["provenance"]), result["breakdown_ps_total"]["total"]
    steps, parts = result["breakdown_detail"]["host_ns"], parts_of(way)
    for step, value in steps.items():
        if value:
            share = result["breakdown_detail"]["host_ps_total"][step] / total
            own = [f"host.{path}" for path in parts.get(step, ()) if path not in way.hop]
            crosses = " + PCIe" if set(way.hop) <= set(parts.get(step, ())) else ""
            said = named(own, inputs, whole=True) + crosses
            yield f"  {step.replace('_', ' ')}", time_text(value), share_text(share), said.removeprefix(" + ")
    hop = [f"host.{path}" for path in way.hop]
    yield "  (each PCIe crossing)", "", "", named(hop, inputs)


def _links(result: Result) -> Iterator[str]:
    used = sorted((link for link in result["links"] if link["tx_frames"]), key=lambda link: -link["utilization"])
    if not used:
        return
    shown = [key for key in HELD_BACK if any(link[key] for link in used)]
    heads = ("busiest links", "utilization", "frames", "wire bytes", "longest queue", "lost on wire")
    rows: list[tuple[str, ...]] = [(*heads, *(HELD_BACK[key] for key in shown))]
    rows += [
        (
            arrow(link),
            share_text(link["utilization"]),
            *(f"{link[key]:,}" for key in ("tx_frames", "tx_bytes", "max_queue_bytes", "dropped")),
            *(time_text(link[key]) if key.endswith("_ns") else f"{link[key]:,}" for key in shown),
        )
        for link in used[:LINKS]
    ]
    yield from table(rows)
    yield from _rest(len(used) - LINKS, "link")


def arrow(link: Result) -> str:
    """`leaf0 -> h0` of a link's entry, with its number if it has parallels."""
    _, mark, number = link["name"].partition("#")
    return f"{link['from']} -> {link['to']}" + (f" #{number}" if mark else "")


def _flows(result: Result) -> Iterator[str]:
    flows: Sequence[Result] = sorted(result["flows"], key=lambda flow: -flow["slowdown"])
    if len(flows) < 2:
        return
    rows = [("slowest flows", "messages", "bytes", "completion", "ideal", "slowdown", "sent again")]
    rows += [
        (
            f"{flow['src']} -> {flow['dst']}",
            f"{flow['messages']:,}",
            size_text(flow["bytes"]),
            time_text(flow["fct_ns"]),
            time_text(flow["ideal_fct_ns"]),
            f"{flow['slowdown']:.2f}",
            f"{flow['retransmitted']:,}",
        )
        for flow in flows[:FLOWS]
    ]
    yield from table(rows)
    yield from _rest(len(flows) - FLOWS, "flow")


def _rest(number: int, one: str) -> Iterator[str]:
    if number > 0:
        yield f"  and {count_text(number, one)} more"


def _expectations(result: Result) -> Iterator[str]:
    rows = [
        ("holds" if each["holds"] else "DOES NOT HOLD", each["text"], f"(it is {each['value']})")
        for each in result["expect"]
    ]
    yield from table(rows, left=(0, 1, 2))


def _warnings(result: Result) -> Iterator[str]:
    yield from (f"  warning: {text}" for text in result["warnings"] if not is_loud(text))
    if result["disturbed"]:
        yield "  warning: something outside the model touched this run (disturbed)"


def _cost(result: Result) -> Iterator[str]:
    run = result["run"]
    yield (
        f"  {run['events']:,} events, {count_text(run['frame_hops'], 'data frame-hop')},"
        f" {count_text(run['control_frame_hops'], 'control frame-hop')}; wall time {run['wall_s']:.2f} s"
        f" ({run['frame_hops_per_s']:,} data frame-hops/s) after {run['build_s']:.2f} s to build;"
        f" {run['peak_rss_mb']} MB"
    )
