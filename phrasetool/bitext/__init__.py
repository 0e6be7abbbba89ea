"""Pairs of sentences that are translations of each other: nearest neighbours, margins, selection, and their quality."""
