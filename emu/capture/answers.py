"""Which flow answers which: a reliable connection's frames do not say who sent them, so often nothing is claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from emu.capture.flow import Flow, Spread

CANDIDATE_LIMIT = 64  # where more could have asked, it is not told which did
ROUTED_BY_PORT = "rocev2"  # its UDP source port is alike both ways, and flows of equal ports take equal ways


class Place(NamedTuple):
    """Where requests of one kind pass; the port only where it means something."""

    interface: str
    network: str
    source: str
    destination: str
    port: int | None


class Claim(NamedTuple):
    """That `answer` answers `asked`, by a PSN, when so many were known that might have asked."""

    asked: Flow
    answer: Flow
    place: Place
    psn: int
    known: int


class Answers:
    """Joins answering flows with asking ones as frames come in, and at the end takes back what was rash.

    RoCEv2: only flows with the same UDP source port, as Linux has it, are joined. Switches hash it, so others between
    the same hosts that have it pass here too. Elsewhere connections between the same hosts may go different ways, and
    only an interface counts on which all of them are seen. Work is bounded: CANDIDATE_LIMIT looks a frame.
    """

    def __init__(self) -> None:
        self._requesters: dict[Place, list[Flow]] = {}
        self._claims: list[Claim] = []
        self._ways_back: dict[str, str] = {}
        self._ends: dict[str, set[str]] = {}  # by interface: hosts that are an end of every flow there
        self._here: Counter[tuple[str, str, str, str]] = Counter()  # connections by interface, network, addresses
        self._anywhere: dict[tuple[str, str, str], set[int]] = {}  # their queue pairs by network and addresses

    def add_flow(self, flow: Flow) -> None:
        """A flow that was not seen before."""
        key = flow.key
        self._ends.setdefault(key.interface, {key.source, key.destination}).intersection_update(key[2:4])
        if key.source_qp is None:
            self._here[key[:4]] += 1
            self._anywhere.setdefault(key[1:4], set()).add(key.destination_qp)

    def add_requester(self, flow: Flow) -> None:
        """Its first request."""
        key = flow.key
        place = Place(key.interface, key.network, key.source, key.destination, _port(flow))
        self._requesters.setdefault(place, []).append(flow)

    def asked(self, flow: Flow, psn: int) -> Flow | None:
        """The flow that this one, which does not know yet, answers with this PSN; None while that is not clear."""
        key = flow.key
        place = Place(self._way_back(key.interface), key.network, key.destination, key.source, _port(flow))
        requesters = self._requesters.get(place)
        if requesters is None or len(requesters) > CANDIDATE_LIMIT:
            return None
        flow.candidates += requesters[flow.compared :]
        flow.compared = len(requesters)
        flow.candidates = [each for each in flow.candidates if each.answers is None and _could_answer(each, psn)]
        if len(flow.candidates) != 1:
            return None
        (asked,) = flow.candidates
        flow.candidates = []
        flow.answered, asked.answers = asked, flow
        self._claims.append(Claim(asked, flow, place, psn, len(requesters)))
        return asked

    def finish(self, *, sees_all: bool) -> None:
        """Take back claims that what came later makes doubtful.

        `sees_all`: no flow was left out.
        """
        doubtful = {claim.place for claim in self._claims if self._is_rash(claim)}
        sure = [claim for claim in self._claims if claim.place not in doubtful]
        pairs = _consistent(claim for claim in sure if claim.place.port is not None or (sees_all and self._all(claim)))
        kept = {claim.asked.number for claim in sure if _pair(claim) in pairs}
        for claim in self._claims:
            if claim.asked.number not in kept:
                claim.asked.answers = claim.answer.answered = None
                claim.asked.answer = Spread()

    def _is_rash(self, claim: Claim) -> bool:
        """Whether another one that could have asked that was seen only later, as where the capture began in between."""
        requesters = self._requesters[claim.place]
        if len(requesters) > CANDIDATE_LIMIT:
            return True
        return any(_could_answer(each, claim.psn) for each in requesters[claim.known :])

    def _all(self, claim: Claim) -> bool:
        """Whether all connections between these hosts pass here both ways, as on the link of one of the hosts."""
        asked, answer = claim.asked.key, claim.answer.key
        ends = self._ends[asked.interface] & self._ends[answer.interface] & {asked.source, asked.destination}
        return bool(ends) and all(self._here[key[:4]] == len(self._anywhere[key[1:4]]) for key in (asked, answer))

    def _way_back(self, interface: str) -> str:
        """The interface of the other direction, by name as ours are called; the same one if there is no such."""
        known = self._ways_back.get(interface)
        if known is not None:
            return known
        name, mark, parallel = interface.partition("#")
        parts = name.split("-")
        for cut in range(1, len(parts)):
            back = "-".join(parts[cut:]) + "-" + "-".join(parts[:cut]) + mark + parallel
            if back in self._ends:
                self._ways_back[interface] = back
                return back
        return interface


Pair = tuple[tuple[str, str, str, int], int]  # a request's network, addresses and queue pair; the answer's queue pair


def _pair(claim: Claim) -> Pair:
    asked = claim.asked.key
    return (*asked[1:4], asked.destination_qp), claim.answer.key.destination_qp


def _consistent(claims: Iterable[Claim]) -> set[Pair]:
    """Pairs that no other one, seen on another interface, contradicts."""
    pairs = {_pair(claim) for claim in claims}
    asked = Counter(pair[0] for pair in pairs)
    answering = Counter((*pair[0][:3], pair[1]) for pair in pairs)
    return {pair for pair in pairs if asked[pair[0]] == 1 == answering[(*pair[0][:3], pair[1])]}


def _port(flow: Flow) -> int | None:
    return flow.source_port if flow.key.network == ROUTED_BY_PORT else None


def _could_answer(asked: Flow, psn: int) -> bool:
    return asked.stream is not None and asked.stream.could_answer(psn)
