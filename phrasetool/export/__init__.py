"""Phrase-table extracts for other systems: candidate output units for neural translators."""
