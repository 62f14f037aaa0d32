"""Sizes in pictures: how wide texts are, which of several titles fits, where the ticks of an axis are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NARROW, _WIDE = frozenset("fijlrtI.,:;'|!()[]/ "), frozenset("mwMW@%&")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_FULL_WIDTH = 0x2E7F
"""The first of the characters that are as wide as high."""
_LARGE, _SMALL = 1e5, 1e-4
"""Numbers beyond which ticks are written with a prefix or an exponent."""
_MOST_TICKS, _PIXELS_A_TICK, _LINES_A_TICK = 6, 64, 36
"""An axis has at most so many ticks, and at least so many pixels between them, across and down."""
_SHORTEST = 0.2
"""The shortest axis of values between 0 and 1, on which small differences look small."""
_PADDING = 0.04
"""The share of its length that an axis is longer than its values, at either end."""


def text_width(text: str, size: float = 12) -> float:
    """The width of a text in pixels, in the usual fonts without serifs, rather too large than too small."""
    widths = 0.0
    for letter in text:
        if letter in _NARROW:
            widths += 0.37
        elif letter in _WIDE:
            widths += 0.95
        elif ord(letter) > _FULL_WIDTH:
            widths += 1.0
        else:
            widths += 0.71 if letter.isupper() else 0.62
    return widths * size


def shortened(text: str, width: float, size: float = 12) -> str:
    """A text that is cut off where it is wider."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + _ELLIPSIS, size) > width:
        text = text[: min(len(text) - 1, len(text) * 9 // 10)] if len(text) > 200 else text[:-1]
    return text.rstrip() + _ELLIPSIS


def fitting(texts: Sequence[str], width: float, size: float) -> list[str]:
    """The first of several texts that fits, as one line; else the last, in two."""
    for text in texts:
        if text_width(text, size) <= width:
            return [text]
    first, *others = wrapped(texts[-1], width, size)
    return [first, shortened(" ".join(others), width, size)] if others else [first]


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text as lines that fit."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [shortened(line, width, size) for line in lines]


@dataclass(frozen=True)
class Axis:
    """The ends of an axis, its ticks, and how they are written."""

    low: float
    high: float
    ticks: tuple[float, ...]
    format: str


@dataclass(frozen=True)
class Span:
    """Knowledge of values beforehand: the ends of their range, and the value of equality or of no change."""

    low: float | None = None
    high: float | None = None
    reference: float | None = None
    is_whole: bool = False
    """The axis shows all of the range, whatever the values."""

    def anchors(self) -> list[float]:
        """The values that the axis shows in any case, and where it may end."""
        shown = [self.reference, self.low, self.high] if self.is_whole else [self.reference]
        return [value for value in shown if value is not None]

    def is_of_shares(self) -> bool:
        """True for values between 0 and 1."""
        return (self.low, self.high) == (0, 1)


def axis_of(values: Iterable[float | None], length: float, span: Span | None = None, *, down: bool = False) -> Axis:
    """The axis that shows all values, and the value of equality, on so many pixels.

    It is a little longer than its values, but does not leave their range.
    """
    span = span or Span()
    shown = [value for value in values if value is not None and math.isfinite(value)] + span.anchors()
    low, high = min(shown, default=0.0), max(shown, default=1.0)
    low, high = _padded(*_long_enough(low, high, span), span)
    ticks, step = _ticks(low, high, length, down=down)
    return Axis(low, high, tuple(ticks), _format(step, max(abs(low), abs(high))))


def _long_enough(low: float, high: float, span: Span) -> tuple[float, float]:
    """The ends of an axis on which small differences look small, and which is never of no length."""
    if span.is_of_shares() and 0 <= low <= high <= 1 and high - low < _SHORTEST:
        half = _SHORTEST / 2
        middle = min(max((low + high) / 2, half), 1 - half)
        return min(low, middle - half), max(high, middle + half)
    if high == low:
        half = abs(low) / 10 or 0.5
        return low - half, high + half
    return low, high


def _padded(low: float, high: float, span: Span) -> tuple[float, float]:
    """The ends with some room beyond them, but no further than the range, nor than a value that is shown in any case.

    A value beyond the range that is known is shown all the same.
    """
    padding = (high - low) * _PADDING
    anchors = span.anchors()
    least, most = low, high
    if low not in anchors:
        least = low - padding if span.low is None else min(low, max(low - padding, span.low))
    if high not in anchors:
        most = high + padding if span.high is None else max(high, min(high + padding, span.high))
    return least, most


def _ticks(low: float, high: float, length: float, *, down: bool) -> tuple[list[float], float]:
    """As many ticks at round numbers as have room, and the step between them."""
    finer = [low, high], high - low
    exponent = math.floor(math.log10((high - low) / 20))
    for power in range(exponent, exponent + 5):
        for digit in (1, 2, 5):
            step = digit * 10.0**power
            first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
            # 12 significant digits hide what is left over by rounding
            ticks = [float(f"{index * step:.12g}") for index in range(first, last + 1)]
            label = f"{high:.{_decimals(step)}f}" if abs(high) < _LARGE else "000k"
            room = _LINES_A_TICK if down else max(text_width(label, 11) + 26, _PIXELS_A_TICK)
            most = int(min(max(2, length / room), _MOST_TICKS))
            if len(ticks) <= most:
                return (ticks, step) if len(ticks) > 1 else _thinned(finer, most)
            finer = ticks, step
    return [low, high], high - low


def _thinned(finer: tuple[list[float], float], most: int) -> tuple[list[float], float]:
    """Every n-th of ticks that are too many, with 0 among them if there is one."""
    ticks, step = finer
    for stride in range(2, len(ticks)):
        start = ticks.index(0) % stride if 0 in ticks else 0
        kept = ticks[start::stride]
        if 1 < len(kept) <= most:
            return kept, step
    return [ticks[0], ticks[-1]], step


def _decimals(step: float) -> int:
    """The decimals in which multiples of a step differ."""
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _format(step: float, largest: float) -> str:
    """The format of ticks, as d3 has it."""
    if largest >= _LARGE:
        return "~s"
    return "~e" if step < _SMALL else f",.{_decimals(step)}f"
