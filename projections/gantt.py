"""A plan as a picture: a line per node, a bar per piece, a colour per tenant, as one SVG.

Down time is hatched. What moved is drawn where it is now, with a dashed outline where it was and
an arrow from there. Nothing in the file needs anything from outside.
"""

from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape

NODES_DRAWN_MAX = 400
BARS_DRAWN_MAX = 20_000
ARROWS_DRAWN_MAX = 200
MARK_PIXELS = 4
TENANTS_NAMED_MAX = 24
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1240, 128, 24, 92, 34
ROW_HIGHEST, ROW_LOWEST, HEIGHT_MOST = 34.0, 7.0, 6_000
TICKS_ABOUT = 9
NAME_LETTERS_MAX = 16
LETTER = 6.3
"""About how wide a letter of the small type is, in pixels."""

_STEPS_SECONDS = (60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 604_800)


@dataclass(frozen=True, slots=True)
class Line:
    """A node: its name, its GPUs, and the group that it is drawn in."""

    node_id: str
    gpus: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a node over a span; times are of any unit."""

    node_id: str
    first_milli: int
    width_milli: int
    start: int
    end: int
    tenant: str
    name: str
    state: str = ""
    """Shown when pointed at."""
    is_new: bool = False
    """Whether it came here by a move: where an arrow ends."""


@dataclass(frozen=True, slots=True)
class Down:
    """A node, or a part of it, takes nobody over a span."""

    node_id: str
    first_milli: int
    width_milli: int
    start: int
    end: int
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Something happened; shown below the nodes, and told when pointed at."""

    at: int
    told: str


@dataclass(frozen=True, slots=True)
class Gantt:
    """Everything that is drawn."""

    title: str
    start: int
    end: int
    ticks: tuple[tuple[int, str], ...]
    lines: tuple[Line, ...]
    bars: tuple[Bar, ...]
    downs: tuple[Down, ...] = ()
    was: tuple[Bar, ...] = ()
    """Where the moved ones were."""
    now: int | None = None
    notes: tuple[str, ...] = field(default=())
    """Lines below the title."""
    marks: tuple[Mark, ...] = field(default=())


def clock_ticks(start: int, end: int) -> tuple[tuple[int, str], ...]:
    """Ticks of a span of microseconds, on whole minutes, hours or days of UTC."""
    seconds = max(1, (end - start) // 1_000_000)
    step = next((s for s in _STEPS_SECONDS if seconds / s <= TICKS_ABOUT), _STEPS_SECONDS[-1])
    step *= max(1, round(seconds / step / TICKS_ABOUT))
    first = -(-start // (step * 1_000_000)) * step
    style = "%d %b" if step >= 86_400 else "%d %b %H:%M"
    return tuple(
        (at * 1_000_000, datetime.fromtimestamp(at, UTC).strftime(style))
        for at in range(first, end // 1_000_000 + 1, step)
    )


def number_ticks(start: int, end: int) -> tuple[tuple[int, str], ...]:
    """Ticks of a span of numbers, on 1, 2 or 5 times a power of ten."""
    step = 1
    while (end - start) / step > TICKS_ABOUT:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return tuple((at, str(at)) for at in range(-(-start // step) * step, end + 1, step))


def svg(gantt: Gantt) -> str:
    """The picture. Of more than NODES_DRAWN_MAX nodes the first are drawn, and it says so."""
    drawing = _Drawing(gantt)
    return "\n".join([*drawing.head(), *drawing.body(), "</svg>"]) + "\n"


class _Drawing:
    def __init__(self, gantt: Gantt) -> None:
        self.gantt = gantt
        self.lines = gantt.lines[:NODES_DRAWN_MAX]
        self.bars = [b for b in gantt.bars if b.start < gantt.end and gantt.start < b.end]
        self.row = max(ROW_LOWEST, min(ROW_HIGHEST, HEIGHT_MOST / max(1, len(self.lines))))
        self.top = TOP + 15 * len(self._notes())
        self.y = {line.node_id: self.top + self.row * at for at, line in enumerate(self.lines)}
        self.gpus = {line.node_id: max(1, line.gpus) for line in self.lines}
        self.height = self.top + self.row * len(self.lines) + BOTTOM
        self.tenants = sorted({bar.tenant for bar in (*self.bars, *gantt.was)})
        self.colour = {name: _colour(at) for at, name in enumerate(self.tenants)}

    def _notes(self) -> list[str]:
        notes = list(self.gantt.notes)
        if len(self.gantt.lines) > NODES_DRAWN_MAX:
            notes.append(f"the first {NODES_DRAWN_MAX} of {len(self.gantt.lines)} nodes")
        if len(self.gantt.bars) > BARS_DRAWN_MAX:
            notes.append(f"the first {BARS_DRAWN_MAX} of {len(self.gantt.bars)} bars")
        return notes

    def x(self, at: int) -> float:
        span = max(1, self.gantt.end - self.gantt.start)
        share = min(1.0, max(0.0, (at - self.gantt.start) / span))
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def head(self) -> Iterable[str]:
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:.0f}"'
            f' width="{WIDTH}" role="img" font-family="system-ui,sans-serif" font-size="11">'
            "<style>text{fill:#2b2f36}.q{fill:#6b7280}.g{stroke:#0000001f}.bg{fill:#fff}"
            ".alt{fill:#00000008}.w{fill:none;stroke:#111;stroke-dasharray:3 2}.a{fill:none;"
            "stroke:#111;stroke-width:1.2;opacity:.75}.n{stroke:#c81e1e;stroke-width:1.2}"
            ".m{fill:#6b7280;stroke:#fff;stroke-width:.6}"
            "@media(prefers-color-scheme:dark){text{fill:#e5e7eb}.q{fill:#9ca3af}.bg{fill:#16181d}"
            ".g{stroke:#ffffff26}.alt{fill:#ffffff0a}.w,.a{stroke:#fff}}</style>"
        )
        yield (
            '<defs><pattern id="d" width="6" height="6" patternUnits="userSpaceOnUse"'
            ' patternTransform="rotate(45)"><rect width="6" height="6" fill="#c94f4f" opacity=".16"'
            '/><path d="M0 0V6" stroke="#c94f4f" stroke-width="2.4"/></pattern>'
            '<marker id="p" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6"'
            ' orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>'
        )
        yield f'<title>{escape(self.gantt.title)}</title><rect class="bg" width="100%" height="100%"/>'
        yield (
            f'<text x="{LEFT}" y="24" font-size="15" font-weight="600">'
            f"{escape(self.gantt.title)}</text>"
        )
        for at, note in enumerate(self._notes()):
            yield f'<text class="q" x="{LEFT}" y="{42 + 15 * at}">{escape(note)}</text>'
        yield from self._legend(self.top - 46)

    def _legend(self, y: float) -> Iterable[str]:
        x = float(LEFT)
        named = [(name, self.colour[name]) for name in self.tenants[:TENANTS_NAMED_MAX]]
        extra = [("down", "url(#d)")] if self.gantt.downs else []
        if len(self.tenants) > len(named):
            extra.append((f"and {len(self.tenants) - len(named)} more", "#9ca3af"))
        for name, fill in (*named, *extra):
            length = 26 + LETTER * len(name)
            if x + length > WIDTH - RIGHT:
                break
            yield f'<rect x="{x:.0f}" y="{y:.0f}" width="11" height="11" rx="2" fill="{fill}"/>'
            yield f'<text x="{x + 15:.0f}" y="{y + 9.5:.1f}">{escape(name)}</text>'
            x += length
        if self.gantt.was and x + 90 < WIDTH:
            yield f'<rect class="w" x="{x:.0f}" y="{y:.0f}" width="16" height="11"/>'
            yield f'<text x="{x + 20:.0f}" y="{y + 9.5:.1f}">was here</text>'

    def body(self) -> Iterable[str]:
        foot = self.top + self.row * len(self.lines)
        for at, line in enumerate(self.lines):
            y = self.y[line.node_id]
            if at % 2:
                yield (
                    f'<rect class="alt" x="{LEFT}" y="{y:.1f}" width="{WIDTH - LEFT - RIGHT}"'
                    f' height="{self.row:.1f}"/>'
                )
            if self.row >= 10 or at % 2 == 0:
                name = line.node_id if not line.group else f"{line.group} {line.node_id}"
                yield (
                    f'<text x="{LEFT - 8}" y="{y + self.row / 2 + 3.5:.1f}" text-anchor="end">'
                    f"{escape(_short(name, 18))}</text>"
                )
        for moment, label in self.gantt.ticks:
            x = self.x(moment)
            yield f'<path class="g" d="M{x:.1f} {self.top - 4:.1f}V{foot:.1f}"/>'
            side = "middle" if x + LETTER * len(label) / 2 < WIDTH else "end"
            for y in (foot + 21, self.top - 10):
                yield f'<text class="q" x="{x:.1f}" y="{y:.1f}" text-anchor="{side}">{label}</text>'
        for down in self.gantt.downs:
            yield from self._rect(down, "url(#d)", f"{down.node_id}: {down.why}", "")
        for bar in self.bars[:BARS_DRAWN_MAX]:
            told = f"{bar.name}, {bar.tenant}, {bar.width_milli / 1000:g} GPU, {bar.state}"
            yield from self._rect(bar, self.colour[bar.tenant], told, bar.name)
        yield from self._moves()
        if self.gantt.now is not None and self.gantt.start < self.gantt.now < self.gantt.end:
            x = self.x(self.gantt.now)
            yield f'<path class="n" d="M{x:.1f} {self.top - 4:.1f}V{foot:.1f}"><title>now</title></path>'
        yield from self._marks(foot)

    def _marks(self, foot: float) -> Iterable[str]:
        """A small triangle for each; those that would lie on each other are one."""
        told: dict[int, list[str]] = {}
        for mark in self.gantt.marks:
            told.setdefault(round(self.x(mark.at) / MARK_PIXELS), []).append(mark.told)
        for at, lines in told.items():
            yield (
                f'<path class="m" d="M{at * MARK_PIXELS} {foot + 1:.1f}l4 7h-8z">'
                f"<title>{escape(chr(10).join(lines))}</title></path>"
            )

    def _box(self, of: Bar | Down) -> tuple[float, float, float, float] | None:
        """Left, top, width and height; None where its node is not drawn."""
        y = self.y.get(of.node_id)
        if y is None or of.end <= self.gantt.start or of.start >= self.gantt.end:
            return None
        inner = self.row - 2
        scale = inner / (1000 * self.gpus[of.node_id])
        left, right = self.x(of.start), self.x(of.end)
        high = max(0.8, of.width_milli * scale - 0.3)
        return left, y + 1 + of.first_milli * scale, max(0.8, right - left - 0.4), high

    def _rect(self, of: Bar | Down, fill: str, told: str, name: str) -> Iterable[str]:
        box = self._box(of)
        if box is None:
            return
        left, top, wide, high = box
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="1"'
            f' fill="{fill}"><title>{escape(told)}</title></rect>'
        )
        letters = int((wide - 6) / LETTER)
        if name and high >= 11 and letters >= 4:
            yield (
                f'<text x="{left + 3:.1f}" y="{top + high / 2 + 3.5:.1f}" style="fill:#111"'
                f' pointer-events="none">{escape(_short(name, min(letters, NAME_LETTERS_MAX)))}</text>'
            )

    def _moves(self) -> Iterable[str]:
        """A dashed outline where each was, and one arrow for each that moved to another node."""
        drawn = 0
        there: dict[str, list[Bar]] = {}
        for bar in self.bars:
            there.setdefault(bar.name, []).append(bar)
        seen: set[tuple[str, str]] = set()
        for old in self.gantt.was:
            box = self._box(old)
            if box is None:
                continue
            left, top, wide, high = box
            yield (
                f'<rect class="w" x="{left:.1f}" y="{top:.1f}" width="{wide:.1f}"'
                f' height="{high:.1f}"><title>{escape(old.name)} was here</title></rect>'
            )
            new = _target(old, there.get(old.name, ()))
            to = self._box(new) if new else None
            if to is None or (old.name, old.node_id) in seen or drawn >= ARROWS_DRAWN_MAX:
                continue
            seen.add((old.name, old.node_id))
            drawn += 1
            at = max(left, to[0]) + min(wide, to[2]) / 2
            begin, end = top + high / 2, to[1] + to[3] / 2
            yield (
                f'<path class="a" marker-end="url(#p)" d="M{at:.1f} {begin:.1f}'
                f'C{at + 26:.1f} {begin:.1f} {at + 26:.1f} {end:.1f} {at:.1f} {end:.1f}"/>'
            )


def _target(old: Bar, now: Sequence[Bar]) -> Bar | None:
    """Where what was there went: a bar that a move brought, else any on another node."""
    others = [bar for bar in now if bar.node_id != old.node_id]
    return next((bar for bar in others if bar.is_new), others[0] if others else None)


def _colour(number: int) -> str:
    """Hues as far apart as the golden angle puts them, light enough for dark letters."""
    hue, light = (number * 137.508 + 212) % 360 / 360, 0.64 if number % 2 == 0 else 0.74
    return "#" + "".join(f"{round(255 * part):02x}" for part in hls_to_rgb(hue, light, 0.62))


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
