"""The report about a phrase table: its measurements, the modules with their verdicts, and the page."""
