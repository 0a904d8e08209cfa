"""From a scenario file, or a built-in's name, to a Scenario: read, set, fill in from the profile, check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emu.errors import ScenarioError
from emu.scenario import builtin
from emu.scenario.check import Place, dotted, one_line, validate
from emu.scenario.document import Document, parse_document, parse_value, read_file
from emu.scenario.field import nearest, show
from emu.scenario.host import FRONT_END_KEYS, PATH_SECTIONS
from emu.scenario.model import Incast, PauseStorm, Scenario, Traffic, Victim
from emu.scenario.origin import Origin
from emu.scenario.profile import SECTIONS, Profile, is_path, load_profile, profile_names, value_text
from emu.scenario.provenance import Provenance
from emu.scenario.victim import choose_pair

PCIE = ["host", "pcie"]


def load(source: str | Path, settings: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """The scenario in a file, or the built-in of that name. Raises ScenarioError: one line, with file, line and key.

    `settings` are texts `path=value`, as after --set; `seed` wins over the file's.
    """
    name = str(source)
    if isinstance(source, str) and name in builtin.names():
        return _resolve(parse_document(builtin.text(name), f"{name}.yaml"), settings, seed, Path())
    path = Path(name)
    if not is_path(name) and not path.exists():
        raise ScenarioError(f"no scenario file or built-in {show(name)}{nearest(name, builtin.names())}")
    return _resolve(parse_document(read_file(path), name), settings, seed, path.parent)


def parse(text: str, where: str = "scenario", settings: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """The scenario written in `text`; `where` is what errors call it. Raises ScenarioError."""
    return _resolve(parse_document(text, where), settings, seed, Path())


def build(
    given: Mapping[str, Any],
    settings: Sequence[str] = (),
    seed: int | None = None,
    options: Mapping[Place, str] | None = None,
) -> Scenario:
    """The scenario that a mapping with a file's keys describes. Raises ScenarioError.

    `options` says which option gave a part of it, by place: what errors call it.
    """
    return _resolve(Document("scenario", given), settings, seed, Path(), options)


def _resolve(
    document: Document,
    settings: Sequence[str],
    seed: int | None,
    folder: Path,
    given_by: Mapping[Place, str] | None = None,
) -> Scenario:
    given = _top(document)
    _spell_out(given)
    options = dict(given_by or {})
    for text in settings:
        options[_set(given, text)] = f"--set {text}"
    if seed is not None:
        options[_set(given, f"run.seed={seed}")] = f"--seed {seed}"
    origin = Origin(Document(document.name, None, document.lines), options)
    profile = _profile(given, origin, folder)
    _anchor(given, origin, folder)
    if profile is not None:
        _fill(given, profile)
    scenario = _settle(validate(Scenario, given, origin.where), origin)
    assert profile is not None  # validation refuses a fabric without one
    return scenario.with_provenance(_provenance(scenario, profile)).with_origin(origin)


def _top(document: Document) -> dict[str, Any]:
    """A copy of the document's mapping that may be changed."""
    keys = f"a scenario is a mapping of the keys {', '.join(Scenario.written_keys())}"
    if document.value is None:
        raise ScenarioError(f"{document.name}: empty: {keys}")
    if not isinstance(document.value, Mapping):
        kind = "a list" if isinstance(document.value, list) else show(document.value)
        raise ScenarioError(f"{document.where(())}: {kind} at top level: {keys}")
    copy: dict[str, Any] = _copy(document.value)
    return copy


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(part) for key, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, (list, tuple)) else value


def _set(given: dict[str, Any], text: str) -> Place:
    """Change what `path=value` says; the path's place. Raises ScenarioError."""
    label = f"--set {show(text)[1:-1]}"
    path, equals, value_text = text.partition("=")
    steps = path.strip().split(".")
    if not equals or not all(steps):
        raise ScenarioError(
            one_line(f"{label}: write PATH=VALUE, like fabric.hop_latency=300ns or traffic.0.size=1MiB")
        )
    try:
        value = parse_value(value_text)
    except ScenarioError as error:
        raise ScenarioError(one_line(f"{label}: {error}")) from None
    part: Any = given
    place: list[str | int] = []
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        key = _step(part, step, f"{label}: {dotted(place)}")
        place.append(key)
        if last and place == PCIE and isinstance(value, str) and isinstance(part.get(key), dict):
            part[key]["wire"] = value
        elif last:
            part[key] = value
        elif isinstance(part, dict):
            part = part.setdefault(key, {})
        else:
            part = part[key]
    _spell_out(given)
    return tuple(place)


def _spell_out(given: dict[str, Any]) -> None:
    """`pcie: veth` says which wire, and nothing else of it."""
    host = given.get(PCIE[0])
    if isinstance(host, dict) and isinstance(host.get(PCIE[1]), str):
        host[PCIE[1]] = {"wire": host[PCIE[1]]}


def _step(part: Any, step: str, label: str) -> str | int:
    if isinstance(part, dict):
        return step
    if not isinstance(part, list):
        raise ScenarioError(one_line(f"{label}{show(part)} has no parts to set"))
    if not step.isascii() or not step.isdigit() or len(step) > 9 or int(step) >= len(part):
        allowed = f"0 to {len(part) - 1}" if part else "none, for it is empty"
        raise ScenarioError(one_line(f"{label}{show(step)} is no place in this list; allowed: {allowed}"))
    return int(step)


def _profile(given: dict[str, Any], origin: Origin, folder: Path) -> Profile | None:
    """The profile that is asked for, its path made absolute; None where no fabric is given to have one."""
    fabric = given.get("fabric")
    if not isinstance(fabric, dict):
        return None
    place = ("fabric", "profile")
    name = fabric.get("profile")
    try:
        if name is None:
            raise ScenarioError(f"is missing; known: {', '.join(profile_names())}, or a path such as ./mine.yaml")
        if not isinstance(name, str):
            raise ScenarioError(f"{show(name)} is no name; known: {', '.join(profile_names())}")
        if is_path(name):
            base = Path() if place in origin.options else folder
            name = fabric["profile"] = _absolute(base / name)
        return load_profile(name)
    except ScenarioError as error:
        raise ScenarioError(one_line(f"{origin.where(place)}: fabric.profile: {error}")) from None


def _anchor(given: dict[str, Any], origin: Origin, folder: Path) -> None:
    """Captures to replay are looked for beside the scenario's file, those named by an option where one is."""
    traffic = given.get("traffic")
    for number, each in enumerate(traffic if isinstance(traffic, list) else ()):
        file = each.get("file") if isinstance(each, dict) and each.get("kind") == "replay" else None
        if isinstance(file, str) and file and "\0" not in file:
            base = Path() if ("traffic", number, "file") in origin.options else folder
            each["file"] = _absolute(base / file)


def _absolute(path: Path) -> str:
    try:
        return str(path.absolute())
    except OSError as error:
        raise ScenarioError(f"{path}: the current folder cannot be had ({error.strerror})") from None


def _fill(given: dict[str, Any], profile: Profile) -> None:
    """Add the profile's values where the scenario gives none, and to a group those that it does not change."""
    host = given.get("host")
    has_path = isinstance(host, dict) and host.get("path", "none") != "none"
    for section in SECTIONS:
        if not has_path and section[0] == "host" and section[-1] in PATH_SECTIONS:
            continue
        part: Any = given
        for step in section:
            part = part.setdefault(step, {}) if isinstance(part, dict) else None
        for key, value in profile.values(section).items() if isinstance(part, dict) else ():
            if not has_path and key in FRONT_END_KEYS:
                continue
            if key not in part:
                part[key] = _copy(value)
            elif isinstance(part[key], dict) and isinstance(value, Mapping):
                part[key] = _copy(value) | part[key]


def _settle(scenario: Scenario, origin: Origin) -> Scenario:
    """Say what traffic leaves to be chosen: who the victim is, on which priority a storm comes."""
    settled: list[Traffic] = []
    for place, each in enumerate(scenario.traffic):
        if isinstance(each, Victim) and each.pair is None:
            incasts = (other for other in scenario.traffic if isinstance(other, Incast))
            try:
                each = each.replace(pair=choose_pair(scenario.fabric.topology, incasts))
            except ScenarioError as error:
                raise origin.mistake(str(error), ("traffic", place)) from None
        elif isinstance(each, PauseStorm) and each.priority is None:
            each = each.replace(priority=scenario.fabric.priority)
        settled.append(each)
    return scenario.replace(traffic=tuple(settled))


def _provenance(scenario: Scenario, profile: Profile) -> dict[str, Provenance]:
    """Of each of the profile's parameters: the profile's own, unless the scenario gave another value."""
    resolved = scenario.resolved()
    found: dict[str, Provenance] = {}
    for place, (entry, usual) in profile.resolved().items():
        value: Any = resolved
        for step in place:
            value = value.get(step) if value is not None else None
        if value is None:
            continue  # of a way to the NIC that this scenario does not have
        path = ".".join(map(str, place))
        same = value == usual
        found[path] = Provenance(
            entry.kind if same else "scenario", entry.source if same else _by_scenario(value, usual), value_text(value)
        )
    return found


def _by_scenario(value: Any, usual: Any) -> str:
    """What the scenario set: the whole, or some of a group whose others are the profile's."""
    if isinstance(value, Mapping) and isinstance(usual, Mapping):
        changed = [str(key) for key in value if value[key] != usual.get(key)]
        if len(changed) < len(value):
            return f"{', '.join(changed)} set by the scenario"
    return "set by the scenario"
