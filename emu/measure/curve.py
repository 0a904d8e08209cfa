"""How long queues were over time, in memory that does not grow: a curve a link, coarser the longer it gets."""

from __future__ import annotations

from emu.measure.series import Sample

POINTS = 128  # of a curve at most; one more, and each two become one


class Curve:
    """The most that was held in each of equally long steps of time. Times in picoseconds."""

    __slots__ = ("_lanes", "level_bytes", "points", "step_ps")

    def __init__(self, step_ps: int) -> None:
        self.step_ps = step_ps
        self.points: list[int] = []
        self.level_bytes = 0  # now, of all lanes together
        self._lanes: dict[int, int] = {}

    def set(self, time_ps: int, lane: int, held_bytes: int) -> None:
        """What one lane holds from now on. Times never go back."""
        self.reach(time_ps)
        self.level_bytes += held_bytes - self._lanes.get(lane, 0)
        self._lanes[lane] = held_bytes
        self.points[-1] = max(self.points[-1], self.level_bytes)

    def reach(self, time_ps: int) -> None:
        """Nothing has changed until now."""
        while time_ps // self.step_ps >= POINTS:
            self.points = [max(self.points[place : place + 2]) for place in range(0, len(self.points), 2)]
            self.step_ps *= 2
        self.points += [self.level_bytes] * (time_ps // self.step_ps + 1 - len(self.points))


class Curves:
    """The curve of each direction of a link, by name."""

    def __init__(self, step_ps: int) -> None:
        self._step_ps = step_ps
        self._curves: dict[str, Curve] = {}

    def take(self, sample: Sample) -> None:
        """A sample of any series; those of queues are looked at."""
        if sample.series == "queue_bytes":
            curve = self._curves.get(sample.name)
            if curve is None:
                curve = self._curves[sample.name] = Curve(self._step_ps)
            curve.set(sample.time_ps, sample.lane, sample.value)

    def of(self, name: str, end_ps: int) -> Curve:
        """That direction's curve, up to the end."""
        curve = self._curves.get(name) or Curve(self._step_ps)
        curve.reach(end_ps)
        return curve
