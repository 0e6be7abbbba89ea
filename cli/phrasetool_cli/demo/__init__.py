"""The demo: a small Chinese-English corpus, its alignment and a model, and the steps from them to BLEU."""
