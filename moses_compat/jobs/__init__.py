"""Work on tables, texts and models from files to files, one module for each job.

`prune` (with `prune_request`, `prune_ranking`, `sinks`, `reasons_file` and `bleu_budget`), `annotate`, `augment`,
`pivot`, `filter_pt` and `threshold_filter` write tables; `table_parts` does so part by part.  `candidate_lists`,
`marian_shortlist`, `term_lexicon` and `bicleaner_dictionaries` export; `mine` finds and `bitexts` filters sentence
pairs; `tune`, `rescore` and `rerank` work on n-best lists.
"""
