"""The built-in scenarios: the files of traffic/scenarios, by name."""

from __future__ import annotations

from importlib.resources import files

_FOLDER = files("traffic") / "scenarios"


def names() -> list[str]:
    """Their names, sorted."""
    found = (file.name for file in _FOLDER.iterdir())
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))


def text(name: str) -> str:
    """The file's text; `name` is one of `names()`."""
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def description(name: str) -> str:
    """The comment the file begins with."""
    first = text(name).lstrip("\ufeff").splitlines()[:1]
    return first[0].lstrip("# ").strip() if first and first[0].startswith("#") else ""


def descriptions() -> dict[str, str]:
    """Each name with its description."""
    return {name: description(name) for name in names()}
