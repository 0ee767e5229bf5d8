"""Counters and timings as metrics of OpenTelemetry: the extra `tablelog[opentelemetry]`."""

from opentelemetry.metrics import MeterProvider, get_meter

from .observe import COUNTERS, TIMINGS, Counter, Fields, Timing


class OpenTelemetryObserver:
    """Records counters as `tablelog.<name>`, and timings as histograms `tablelog.<name>.duration` in seconds.

    The attributes are `table`, `store` and `outcome`. `version` and `attempt` are left out, because each value would be
    a time series of its own.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        """Create the instruments.

        Args:
            meter_provider: Creates the meter; by default the global provider.
        """
        meter = get_meter("tablelog", meter_provider=meter_provider)
        self._counters = {
            name: meter.create_counter(f"tablelog.{name}", unit="1", description=text)
            for name, text in COUNTERS.items()
        }
        self._timings = {
            name: meter.create_histogram(f"tablelog.{name}.duration", unit="s", description=text)
            for name, text in TIMINGS.items()
        }

    def counted(self, name: Counter, value: int, fields: Fields) -> None:
        """Add to the counter."""
        self._counters[name].add(value, _attributes(fields))

    def timed(self, name: Timing, seconds: float, fields: Fields) -> None:
        """Record the time in the histogram."""
        self._timings[name].record(seconds, _attributes(fields))


def _attributes(fields: Fields) -> dict[str, str]:
    return {name: value for name, value in fields.items() if isinstance(value, str)}
