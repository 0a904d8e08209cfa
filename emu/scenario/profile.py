"""Profiles: YAML files of parameters, each with its source and the kind of source it is; read, checked, inherited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from emu.errors import ScenarioError
from emu.scenario.check import Place, validate
from emu.scenario.document import Document, parse_document, read_file
from emu.scenario.fabric_values import FabricValues
from emu.scenario.field import Model, Name, Text, choice, nearest, show
from emu.scenario.host import Nic
from emu.scenario.host_path import Cpu, Gpu, PcieValues, Queues
from emu.scenario.provenance import PROFILE_KINDS, Kind, Provenance

_FOLDER = files("emu") / "profiles"
SUFFIXES = (".yaml", ".yml")
EXTENDS_LIMIT = 8
SECTIONS: Mapping[Place, type[Model]] = {
    ("fabric",): FabricValues,
    ("host", "nic"): Nic,
    ("host", "pcie"): PcieValues,
    ("host", "gpu"): Gpu,
    ("host", "cpu"): Cpu,
    ("host", "queues"): Queues,
}


class Entry(Model):
    """One parameter of a profile file."""

    value: Any  # text, a number, or a group of them: the fabric's or the NIC's model reads it
    source: Text
    kind: Annotated[Kind, *choice(*PROFILE_KINDS)]


class HostEntries(Model):
    """The host's parameters of a profile file."""

    nic: dict[str, Entry] = {}
    pcie: dict[str, Entry] = {}
    gpu: dict[str, Entry] = {}
    cpu: dict[str, Entry] = {}
    queues: dict[str, Entry] = {}


class ProfileFile(Model):
    """A profile file as written; what it does not give comes from the profile it extends."""

    name: Name
    description: Text
    extends: Name | None = None
    fabric: dict[str, Entry] = {}
    host: HostEntries = HostEntries()


@dataclass(frozen=True)
class Profile:
    """A complete profile: every parameter by its place, such as ("fabric", "hop_latency")."""

    name: str
    description: str
    entries: Mapping[Place, Entry]

    def values(self, section: Place) -> dict[str, Any]:
        """The values of a section, such as ("host", "nic"), as a scenario would write them."""
        return {str(place[-1]): entry.value for place, entry in self.entries.items() if place[:-1] == section}

    def resolved(self) -> dict[Place, tuple[Entry, Any]]:
        """Each entry with its value as a resolved scenario writes it."""
        written = {
            section: model.model_validate(self.values(section)).model_dump(mode="json", by_alias=True)
            for section, model in SECTIONS.items()
        }
        return {place: (entry, written[place[:-1]][str(place[-1])]) for place, entry in self.entries.items()}

    def provenance(self) -> dict[str, Provenance]:
        """Where each value comes from, by its dotted place."""
        return {
            ".".join(map(str, place)): Provenance(entry.kind, entry.source, value_text(value))
            for place, (entry, value) in self.resolved().items()
        }


def value_text(value: Any) -> str:
    """A value as a file would have it on one line: `{kmin: 800KB, kmax: 3200KB, pmax: 20%}`."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(part)}" for key, part in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return "[" + ", ".join(map(value_text, value)) + "]" if isinstance(value, (list, tuple)) else str(value)


def profile_names() -> list[str]:
    """The built-in profiles."""
    names = (file.name for file in _FOLDER.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_profile(name: str, beside: Path | None = None) -> Profile:
    """A built-in profile by name, or a file by path (relative to the folder `beside`). Raises ScenarioError."""
    return _load(name, beside or Path(), ())


def is_path(name: str) -> bool:
    """Whether a name is meant as a file's path rather than as a built-in."""
    return "/" in name or name.endswith(SUFFIXES)


def _load(name: str, beside: Path, chain: tuple[str, ...]) -> Profile:
    if not is_path(name):
        known = profile_names()
        if name not in known:
            raise ScenarioError(f"unknown profile {show(name)}{nearest(name, known)}, or a path such as ./mine.yaml")
        return _built_in(name)
    path = beside / name
    return _of(parse_document(read_file(path), str(path)), path.parent, chain)


@cache
def _built_in(name: str) -> Profile:
    """Read once: a sweep asks for it with each of its runs, and PyYAML takes a tenth of a second."""
    return _of(parse_document((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml"), Path(), ())


def _of(document: Document, folder: Path, chain: tuple[str, ...]) -> Profile:
    written = validate(ProfileFile, document.value, document.where)
    entries: dict[Place, Entry] = {}
    if written.extends is not None:
        chain = (*chain, document.name)
        if len(chain) > EXTENDS_LIMIT:
            raise ScenarioError(
                f"{document.where(('extends',))}: extends goes on for more than {EXTENDS_LIMIT} profiles"
            )
        entries |= _load(written.extends, folder, chain).entries
    entries |= dict(_entries(written))
    profile = Profile(written.name, written.description, entries)
    for section, model in SECTIONS.items():
        _check(profile, section, model, document)
    return profile


def _entries(written: ProfileFile) -> Iterator[tuple[Place, Entry]]:
    for key, entry in written.fabric.items():
        yield ("fabric", key), entry
    for section in HostEntries.model_fields:
        for key, entry in getattr(written.host, section).items():
            yield ("host", section, key), entry


def _check(profile: Profile, section: Place, model: type[Model], document: Document) -> None:
    values = profile.values(section)
    for key in model.written_keys():
        if key not in values:
            place = ".".join(map(str, (*section, key)))
            raise ScenarioError(f"{document.name}: {place} is missing: give it, or `extends` a profile that does")
    validate(model, values, document.where, section)
