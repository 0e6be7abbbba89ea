"""The batch scorer: similarities of phrase pairs, each distinct phrase encoded once.  Arrays only, no torch."""
