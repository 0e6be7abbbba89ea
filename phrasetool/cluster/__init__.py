"""The loop of `phrasetool.pipeline` on several machines."""
