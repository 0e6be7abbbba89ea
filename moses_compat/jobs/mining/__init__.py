"""Mining: sentence pairs that are translations, found in two texts that are not aligned."""
