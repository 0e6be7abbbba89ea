"""Jobs that read and write files of tables, texts and models, one module for each job.

`prune` (with `prune_request`, `prune_ranking`, `sinks`, `reasons_file` and `bleu_budget`), `annotate`, `augment` (with
`augmented_tables`), `pivot`, `moses_filters` and `remove_orphans` write tables; `table_parts` writes them part by part.
`candidate_lists` and `dictionaries` export entries, and `show` shows the entries of a phrase; `mine` mines sentence
pairs, and `filter_bitext` and `cross_training` filter them; `tune` and `rerank` work on n-best lists; `inspect`
describes a table, and `tag_text` tags a text.
"""
