"""How low a temperature may be that similarities are divided by."""

from __future__ import annotations

# exp(-2 / temperature), the smallest term there can be, must not vanish in single precision.
LOWEST_TEMPERATURE = 0.03
