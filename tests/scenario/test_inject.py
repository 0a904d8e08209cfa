"""The `inject` key: what may be written, what it says resolved, and each mistake in one line."""

from __future__ import annotations

from fractions import Fraction

import pytest

from emu.errors import ScenarioError
from emu.scenario.inject import KINDS, OPERATIONS
from emu.scenario.load import build, parse
from emu.scenario.model import Scenario

TEXT = """\
name: lossy
fabric: {{profile: {profile}, topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 4KiB}}]
inject:
  - {{{rule}}}
"""


def scenario(rule: str, profile: str = "native", *settings: str) -> Scenario:
    return parse(TEXT.format(rule=rule, profile=profile), "bad.yaml", settings)


@pytest.mark.parametrize("link", ["h0-leaf0", "leaf0-h0"])
def test_a_link_has_two_names_and_two_directions(link: str) -> None:
    (both,) = scenario(f"link: {link}, drop: 1%").inject
    (one,) = scenario(f"link: {link}, direction: h0-leaf0, drop: 1%").inject
    names = ("leaf0-h0", "h0-leaf0")
    assert [both.meets(name, *names) for name in names] == [True, True]
    assert [one.meets(name, *names) for name in names] == [False, True]
    assert not both.meets("leaf1-h1", "leaf1-h1", "h1-leaf1")
    (every,) = scenario("link: all, drop: 1%").inject
    assert every.meets("leaf1-h1", "leaf1-h1", "h1-leaf1")


def test_it_resolves_to_what_loads_again() -> None:
    rule = "link: h0-leaf0, drop: 1/3, delay: 100ns, match: {kind: data, opcode: write_middle, qp: 17, nth: 3}"
    once = scenario(rule)
    (each,) = once.inject
    assert (each.drop, each.corrupt, each.delay_ps) == (Fraction(1, 3), Fraction(0), 100_000)
    assert each.match.nth == (3,)
    assert once.resolved()["inject"][0]["match"] == {"kind": "data", "opcode": "write_middle", "qp": 17, "nth": [3]}
    assert build(once.resolved()) == once


def test_operations_are_named_as_they_are() -> None:
    assert {"send_first", "write_middle", "write_last_with_immediate", "read_response_only"} <= OPERATIONS.keys()
    assert {"acknowledge", "atomic_acknowledge", "compare_swap", "fetch_add", "read_request"} <= OPERATIONS.keys()
    assert OPERATIONS["write_middle"] == 0x07
    assert len(set(OPERATIONS.values())) == len(OPERATIONS)


@pytest.mark.parametrize(
    ("rule", "start", "part"),
    [
        ("drop: 1%", "link: is missing", ""),
        ("link: h0-leaf1, drop: 1%", "link: unknown link 'h0-leaf1'", "did you mean 'h1-leaf1'? known: leaf0-h0"),
        ("link: 3, drop: 1%", "link: 3 is no link's name", "leaf0-h0, or all"),
        ("link: h0-leaf0", "nothing is injected", "drop, duplicate, reorder, corrupt, delay"),
        ("link: h0-leaf0, match: {nth: 1}", "nothing is injected", "drop"),
        ("link: h0-leaf0, drop: 0%", "nothing is injected", "corrupt, delay, more than 0"),
        ("link: h0-leaf0, delay: 0ns", "nothing is injected", "corrupt, delay, more than 0"),
        ("link: h0-leaf0, drop: 0%, duplicate: 0, delay: 0ns", "nothing is injected", "more than 0"),
        ("link: h0-leaf0, drop: 0.5", "drop: 0.5 has no unit", "allowed: 0 to 100%, like 1%, 0.5% or 1/3"),
        ("link: h0-leaf0, reorder: 1", "reorder: 1 has no unit", "0 to 100%"),
        ("link: h0-leaf0, drop: '0.5'", "drop: '0.5' has no unit", "0 to 100%"),
        ("link: h0-leaf0, drop: 101%", "drop: '101%' is out of range", "0 to 100%"),
        ("link: h0-leaf0, drop: -1%", "drop: '-1%' is no share", "0 or more"),
        ("link: h0-leaf0, corrupt: 2", "corrupt: 2 is out of range", "0 to 100%"),
        ("link: h0-leaf0, reorder: often", "reorder: 'often' is no share", "1%"),
        ("link: h0-leaf0, delay: 100", "delay: 100 has no unit", "260ns"),
        ("link: h0-leaf0, delay: -1ns", "delay: ", "between 0 and"),
        ("link: h0-leaf0, lose: 1%", "lose: unknown key 'lose'", "known: link, direction, drop"),
        (
            "link: h0-leaf0, direction: h1-leaf1, drop: 1%",
            "direction: 'h1-leaf1' is not allowed",
            "allowed: both, h0-leaf0, leaf0-h0",
        ),
        ("link: all, direction: h0-leaf0, drop: 1%", "direction: 'h0-leaf0' is not allowed", "allowed: both"),
        ("link: h0-leaf0, drop: 1%, match: {nth: 0}", "match.nth: 0 is out of range", "1 to"),
        ("link: h0-leaf0, drop: 1%, match: {nth: [3, -1]}", "match.nth.1: -1 is out of range", "1 to"),
        ("link: h0-leaf0, drop: 1%, match: {nth: []}", "match.nth: 0 numbers", "1 to"),
        ("link: h0-leaf0, drop: 1%, match: {nth: third}", "match.nth: 'third' is no whole number", "[3, 5]"),
        ("link: h0-leaf0, drop: 1%, match: {every: 0}", "match.every: 0 is out of range", "1 to"),
        ("link: h0-leaf0, drop: 1%, match: {every: 2, nth: 1}", "match.every: nth is given too", "one of them"),
        ("link: h0-leaf0, drop: 1%, match: {qp: 16777216}", "match.qp: 16777216 is out of range", "24 bits"),
        ("link: h0-leaf0, drop: 1%, match: {kind: dta}", "match.kind: 'dta' is not allowed", ", ".join(KINDS)),
        ("link: h0-leaf0, drop: 1%, match: {kind: pfc}", "match.kind: no pfc frames come", "data, ack, fcp"),
        ("link: h0-leaf0, drop: 1%, match: {kind: cnp}", "match.kind: no cnp frames come", "data, ack, fcp"),
        (
            "link: h0-leaf0, drop: 1%, match: {opcode: write_midle}",
            "match.opcode: 'write_midle' is no opcode",
            "did you mean 'write_middle'? known: send_first",
        ),
        (
            "link: h0-leaf0, drop: 1%, match: {kind: ack, opcode: write_middle}",
            "match.opcode: write_middle is data, not ack",
            "",
        ),
        ("link: h0-leaf0, drop: 1%, match: {kind: fcp, qp: 3}", "match.qp: fcp frames are a link's own", "nth, every"),
        ("link: h0-leaf0, reorder: 1%, match: {kind: fcp}", "reorder: fcp frames keep their order", "drop, duplicate"),
        ("link: h0-leaf0, drop: 1%, match: 3", "match: 3 is no mapping", "kind, opcode"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_allowed(rule: str, start: str, part: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(rule)
    line = str(caught.value)
    assert line.startswith(("bad.yaml:5: inject.0." + start, "bad.yaml:5: inject.0: " + start))
    assert part in line
    assert "\n" not in line


def test_every_kind_is_taken_where_it_comes() -> None:
    for profile, kinds in (("native", ("data", "ack", "fcp")), ("roce", ("data", "ack", "cnp", "pfc"))):
        for kind in kinds:
            (each,) = scenario(f"link: all, drop: 100%, match: {{kind: {kind}}}", profile).inject
            assert each.match.kind == kind
