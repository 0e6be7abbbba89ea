"""Bitexts that are judged pair by pair while they stream through."""
