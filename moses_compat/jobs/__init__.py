"""Work on tables, texts and models from files to files, one module for each job.

`prune` (with `prune_request`, `prune_ranking`, `sinks`, `reasons_file` and `bleu_budget`), `annotate`, `augment` (with
`augmented_tables`), `pivot`, `filter_pt`, `threshold_filter` and `remove_orphans` write tables; `table_parts` does so
part by part.  `candidate_lists`, `marian_shortlist`, `term_lexicon` and `bicleaner_dictionaries` export entries (see
`export_entries`); `mine` finds, `filter_bitext` and `cross_training` filter sentence pairs; `tune`, `rescore` and
`rerank` work on n-best lists; `inspect` reports, and `tag_text` tags.
"""
