"""The summary as a picture: one bar a line, on a scale of ratios, for light and dark.

To the right of the middle Penstock is ahead, to the left the peer. The page shows it as
an image, so colours follow what the reader's system prefers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from bench.peers.summary import Line

WIDTH, LABELS, PEERS = 1000, 330, 210
STEP, BAR, HEAD, TOP, BOTTOM = 22, 13, 34, 46, 12
# The scale reaches at least from a quarter to four times.
LEAST_REACH = 2.0
# What lies further out is cut there; the number beside the bar tells.
MOST_REACH = 6.0
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600 }
.soft, .tick { fill: #59636e }
.tick { font-size: 11px; text-anchor: middle }
.end { text-anchor: end }
.ahead { fill: #1a7f37 } .behind { fill: #bc4c00 }
line { stroke: #d1d9e0 } .one { stroke: #59636e }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .soft, .tick { fill: #9198a1 }
  .ahead { fill: #3fb950 } .behind { fill: #f0883e }
  line { stroke: #3d444d } .one { stroke: #9198a1 }
}
"""


def draw(lines: Sequence[Line]) -> str:
    """The whole file; there is at least one line."""
    left, right = LABELS, WIDTH - PEERS
    reaches = [abs(math.log2(line.times)) for line in lines]
    reach = min(max(LEAST_REACH, *reaches), MOST_REACH)
    middle, unit = (left + right) / 2, (right - left) / 2 / (reach * 1.25)
    body: list[str] = []
    y = TOP
    for heading, group in groupby(lines, key=lambda line: line.heading):
        y += HEAD
        body.append(_text(8, y - 10, heading, "head"))
        for line in group:
            body.append(_line(line, y, middle, unit, reach))
            y += STEP
    height = y + BOTTOM
    marks = [_mark(power, middle, unit, height) for power in _powers(reach)]
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    label = "Penstock beside the best peer of each row of the table"
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"'
    return "\n".join(
        (
            f'{root} aria-label="{label}">',
            f"<style>{STYLE}</style>",
            _text(middle - 14, 18, "the peer is ahead", "soft end"),
            _text(middle + 14, 18, "Penstock is ahead", "soft"),
            *marks,
            *body,
            "</svg>\n",
        )
    )


def _line(line: Line, y: float, middle: float, unit: float, reach: float) -> str:
    power = math.log2(line.times)
    end = middle + max(-reach, min(power, reach)) * unit
    kind = "ahead" if power >= 0 else "behind"
    base = y + BAR - 2
    number, side = (end + 6, "soft") if power >= 0 else (end - 6, "soft end")
    place = f'x="{min(middle, end):.1f}" y="{y}" rx="2"'
    size = f'width="{max(abs(end - middle), 1.5):.1f}" height="{BAR}"'
    return "".join(
        (
            _text(LABELS - 12, base, line.words, "end"),
            f'<rect class="{kind}" {place} {size}/>',
            _text(number, base, f"{line.times:.2g}x", side),
            _text(WIDTH - PEERS + 12, base, line.peer, "soft"),
        )
    )


def _powers(reach: float) -> list[int]:
    most = int(reach)
    return list(range(-most, most + 1))


def _mark(power: int, middle: float, unit: float, height: float) -> str:
    x = middle + power * unit
    kind = ' class="one"' if power == 0 else ""
    words = f"{2**power}x" if power >= 0 else f"1/{2**-power}"
    return (
        f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - BOTTOM}"/>'
        + _text(x, TOP - 10, words, "tick")
    )


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'
