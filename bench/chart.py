# SPDX-License-Identifier: Apache-2.0
"""Small charts as SVG text: lines over a logarithmic axis, time unless a panel says otherwise (`draw`), and bars in rows
(`draw_bars`).

No library: a few hundred elements, the same bytes for the same data, colours that follow the reader's light or dark
theme, and every line named where it ends rather than in a legend.
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 236, 220  # of a panel's plotting area
LEFT, RIGHT, TOP, BOTTOM = 34, 66, 30, 40  # around it
LINE_GAP = 13  # between names at the end of lines

STYLE = """
  text { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #57606a }
  .title { font-weight: 600; font-size: 12px; fill: #24292f }
  .grid { stroke: #8c959f; stroke-opacity: .25; stroke-width: 1 }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round }
  .rest { fill: none; stroke-width: 1.5; stroke-dasharray: 2 4 }
  .a { stroke: #0969da } .b { stroke: #bc4c00 } .c { stroke: #1a7f37 } .d { stroke: #8250df } .e { stroke: #9a6700 }
  .dot.a, text.a { fill: #0969da; stroke: none } .dot.b, text.b { fill: #bc4c00; stroke: none }
  .dot.c, text.c { fill: #1a7f37; stroke: none } .dot.d, text.d { fill: #8250df; stroke: none }
  .dot.e, text.e { fill: #9a6700; stroke: none }
  .bar.a { fill: #0969da } .bar.b { fill: #bc4c00 } .bar.c { fill: #1a7f37 } .bar.d { fill: #8250df } .bar { stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 } .title { fill: #e6edf3 }
    .a { stroke: #58a6ff } .b { stroke: #f0883e } .c { stroke: #56d364 } .d { stroke: #bc8cff } .e { stroke: #d29922 }
    .dot.a, text.a { fill: #58a6ff } .dot.b, text.b { fill: #f0883e } .dot.c, text.c { fill: #56d364 }
  }"""


def seconds_text(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.999 * size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def round_step(span, n):
    """The smallest of 1, 2, 5 times a power of ten that cuts span into at most n parts."""
    power = 10 ** math.floor(math.log10(span / n))
    return next(step * power for step in (1, 2, 5, 10) if step * power * n >= span)


class Axes:
    """Where a (seconds, value) is in a panel."""

    def __init__(self, panel):
        lines = panel["lines"]
        times = [t for line in lines for t, _ in line["points"]]
        values = [v for line in lines for _, v in line["points"]] + list(panel.get("range", []))
        self.ticks = panel.get("ticks")
        self.first, self.last = math.log10(min(times)) - 0.05, math.log10(max(times)) + 0.02
        low, high = min(values), max(values)
        self.step = round_step(max(high - low, 1e-9), 5)
        self.low = math.floor(low / self.step) * self.step
        self.high = max(math.ceil(high / self.step - 1e-9) * self.step, self.low + self.step)

    def x(self, seconds):
        return LEFT + WIDTH * (math.log10(seconds) - self.first) / (self.last - self.first)

    def y(self, value):
        return TOP + HEIGHT * (self.high - value) / (self.high - self.low)

    def marks(self):
        """(x, text) below the axis."""
        decades = [10.0**k for k in range(math.ceil(self.first), math.floor(self.last) + 1)]
        return self.ticks or [(seconds, seconds_text(seconds)) for seconds in decades]

    def levels(self):
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]


def draw_grid(axes):
    out = []
    for value in axes.levels():
        y = axes.y(value)
        out.append(f'<path class="grid" d="M{LEFT} {y:.1f}h{WIDTH}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for at, text in axes.marks():
        x = axes.x(at)
        out.append(f'<path class="grid" d="M{x:.1f} {TOP}v{HEIGHT}"/>')
        out.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{text}</text>')
    return out


def draw_line(axes, line):
    points = [(axes.x(t), axes.y(v)) for t, v in sorted(line["points"])]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    out = [f'<path class="line {line["colour"]}" d="M{path}"/>']
    out += [f'<circle class="dot {line["colour"]}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points]
    if line.get("ended"):  # it does not get better by waiting
        x, y = points[-1]
        out.append(f'<path class="rest {line["colour"]}" d="M{x:.1f} {y:.1f}H{LEFT + WIDTH}"/>')
    return out


def draw_names(axes, lines):
    """Names at the lines' right ends, pushed apart where they would touch."""
    ends = sorted((axes.y(max(line["points"])[1]), line["name"], line["colour"]) for line in lines)
    out, last = [], -1e9
    for y, name, colour in ends:
        last = max(y, last + LINE_GAP)
        out.append(f'<text class="{colour}" x="{LEFT + WIDTH + 6}" y="{last + 4:.1f}">{escape(name)}</text>')
    return out


def draw_panel(panel):
    axes = Axes(panel)
    out = [f'<text class="title" x="{LEFT}" y="16">{escape(panel["title"])}</text>']
    out += draw_grid(axes)
    for line in panel["lines"]:
        out += draw_line(axes, line)
    return out + draw_names(axes, panel["lines"])


def draw(panels, note):
    """panels: [{title, lines: [{name, colour: a to e, points: [(seconds, value)], ended}], range: values that the axis has to
    hold, ticks: [(x, text)] where x is no time}]; note: the axes, in words."""
    panel_width = LEFT + WIDTH + RIGHT
    width, height = panel_width * len(panels), TOP + HEIGHT + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
           f' role="img" aria-label="{escape(note)}">', f"<style>{STYLE}\n</style>"]
    for i, panel in enumerate(panels):
        out.append(f'<g transform="translate({i * panel_width} 0)">')
        out += draw_panel(panel)
        out.append("</g>")
    out.append(f'<text x="{LEFT}" y="{height - 6}">{escape(note)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


# ---- bars: one row per network, one narrow bar per engine ----

BAR, ROW_GAP, NAMES, SPACE = 6, 10, 132, 216  # of a bar, between rows, for row names, for the bars


def bar_row(row, y, scale):
    """A row's bars at y between its name and, at the right edge, the first bar's value."""
    height = BAR * len(row["bars"])
    out = [f'<text x="{NAMES - 8}" y="{y + height / 2 + 4:.1f}" text-anchor="end">{escape(row["name"])}</text>']
    for i, bar in enumerate(row["bars"]):
        length = scale * bar["value"]
        out.append(f'<path class="bar {bar["colour"]}" d="M{NAMES} {y + i * BAR:.1f}h{length:.1f}v{BAR - 1}h{-length:.1f}z">'
                   f'<title>{escape(bar["name"])}: {bar["value"]:.2f}</title></path>')
    first = row["bars"][0]
    out.append(f'<text class="{first["colour"]}" x="{NAMES + SPACE + 4}" y="{y + height / 2 + 4:.1f}">'
               f'{first["value"]:.2f}</text>')
    return out


def bar_panel(panel, height, most):
    scale, step = SPACE / most, round_step(most, 4)
    out = [f'<text class="title" x="{NAMES}" y="16">{escape(panel["title"])}</text>']
    for i in range(int(most / step + 1e-9) + 1):
        x = NAMES + scale * step * i
        out.append(f'<path class="grid" d="M{x:.1f} {TOP}v{height}"/>')
        out.append(f'<text x="{x:.1f}" y="{TOP + height + 16}" text-anchor="middle">{step * i:g}</text>')
    y = TOP + ROW_GAP / 2
    for row in panel["rows"]:
        out += bar_row(row, y, scale)
        y += BAR * len(row["bars"]) + ROW_GAP
    return out


def legend(names, y):
    out, x = [], NAMES
    for name, colour in names:
        out.append(f'<path class="bar {colour}" d="M{x} {y - 8}h10v8h-10z"/><text x="{x + 14}" y="{y}">{escape(name)}</text>')
        x += 32 + 7 * len(name)
    return out


def draw_bars(panels, names, note):
    """panels: [{title, rows: [{name, bars: [{name, colour: a b c d, value}]}]}]; names: [(name, colour)] of the legend;
    note: what a bar's length is. All panels have one scale from 0."""
    most = 1.08 * max(bar["value"] for panel in panels for row in panel["rows"] for bar in row["bars"])
    tall = max(sum(BAR * len(row["bars"]) + ROW_GAP for row in panel["rows"]) for panel in panels)
    panel_width = NAMES + SPACE + 40
    width, height = panel_width * len(panels), TOP + tall + BOTTOM + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
           f' role="img" aria-label="{escape(note)}">', f"<style>{STYLE}\n</style>"]
    for i, panel in enumerate(panels):
        out.append(f'<g transform="translate({i * panel_width} 0)">')
        out += bar_panel(panel, tall, most)
        out.append("</g>")
    out += legend(names, height - 26)
    out.append(f'<text x="{NAMES}" y="{height - 6}">{escape(note)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
