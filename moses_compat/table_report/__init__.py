"""The report about a phrase table: what is measured, the verdict on each module, and the page."""
