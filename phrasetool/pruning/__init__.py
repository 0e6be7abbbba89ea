"""Selection of the entries to remove from a phrase table.

`criteria` and `methods` score entries by their `measures`; `protection` marks the entries that are always kept;
`decision` applies thresholds or sizes (`thresholds`, `sizes`) and explains removals; `ranked_table` does the same for
tables in files; `statistics` counts removals; `budget` searches for the smallest table within a loss of BLEU.
"""
