"""A self-contained SVG of utilisation over time: one stacked area for each state."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

WIDTH, HEIGHT = 1000, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 64, 40

COLOURS = {
    "reserved_used": "#2f6fde",
    "borrowed": "#35a07c",
    "overflow": "#d9822b",
    "lent": "#8e6fd1",
    "reserved_unused": "#9dbcf2",
    "held": "#c9d8f5",
    "service": "#e0b93b",
    "maintenance": "#a8a29a",
    "down": "#c94f4f",
    "idle": "#e8eaee",
}
"""The order of the stack, from the ground up."""

Point = tuple[int, dict[str, int]]


def svg(points: Sequence[Point], title: str) -> str:
    """The chart of (first microsecond of a bucket, GPU-microseconds by state), in time order."""
    totals = [sum(states.values()) or 1 for _, states in points]
    shown = [state for state in COLOURS if any(states.get(state) for _, states in points)]
    parts = [_head(title), *_grid(), *_areas(points, totals, shown)]
    parts += [*_dates(points), *_legend(shown), "</svg>"]
    return "\n".join(parts) + "\n"


def _head(title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        "<style>text{font:12px system-ui,sans-serif;fill:#333}.t{font-size:15px;font-weight:600}"
        ".g{stroke:#0001}@media(prefers-color-scheme:dark){text{fill:#ddd}.g{stroke:#fff2}}</style>"
        f'<title>{escape(title)}</title><text class="t" x="{LEFT}" y="22">{escape(title)}</text>'
    )


def _x(index: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * index / max(1, count)


def _y(share: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)


def _grid() -> list[str]:
    return [
        f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(s / 4):.1f}" y2="{_y(s / 4):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{_y(s / 4) + 4:.1f}" text-anchor="end">{s * 25} %</text>'
        for s in range(5)
    ]


def _areas(points: Sequence[Point], totals: list[int], shown: list[str]) -> list[str]:
    """One polygon for each state, on top of those before it; a step for each bucket."""
    ground = [0.0] * len(points)
    areas: list[str] = []
    for state in shown:
        roof = [
            low + states.get(state, 0) / total
            for low, (_, states), total in zip(ground, points, totals, strict=True)
        ]
        up = [(x, _y(y)) for i, y in enumerate(roof) for x in _edges(i, len(points))]
        down = [(x, _y(y)) for i, y in enumerate(ground) for x in _edges(i, len(points))]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in up + down[::-1])
        areas.append(f'<polygon points="{path}" fill="{COLOURS[state]}"/>')
        ground = roof
    return areas


def _edges(index: int, count: int) -> tuple[float, float]:
    return _x(index, count), _x(index + 1, count)


def _dates(points: Sequence[Point]) -> list[str]:
    marks: list[str] = []
    step = max(1, len(points) // 8)
    for index in range(0, len(points), step):
        day = datetime.fromtimestamp(points[index][0] / 1e6, UTC)
        marks.append(
            f'<text x="{_x(index, len(points)):.1f}" y="{HEIGHT - 16}">{day:%d %b %Y}</text>'
        )
    return marks


def _legend(shown: list[str]) -> list[str]:
    marks: list[str] = []
    x = float(LEFT)
    for state in shown:
        marks.append(
            f'<rect x="{x:.0f}" y="36" width="11" height="11" rx="2" fill="{COLOURS[state]}"/>'
            f'<text x="{x + 16:.0f}" y="46">{state.replace("_", " ")}</text>'
        )
        x += 30 + 7 * len(state)
    return marks
