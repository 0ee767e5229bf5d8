"""Sizes for people."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(value: float | None) -> str:
    """A number of bytes in units of 1024."""
    if value is None:
        return "unknown"
    unit = 0
    while abs(value) >= 1023.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    text = f"{value:.0f}" if unit == 0 or value >= 99.95 else f"{value:.1f}".removesuffix(".0")
    return f"{text} {_UNITS[unit]}"
