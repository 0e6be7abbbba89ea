"""The loop of `phrasetool.pipeline`, distributed over several machines."""
