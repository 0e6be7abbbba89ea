"""Sentences and their translations: nearest neighbours, margins, pairs one to one, and how good they are."""
