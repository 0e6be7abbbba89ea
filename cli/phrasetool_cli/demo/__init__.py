"""The demo: a small Chinese-English corpus, its alignment and a model."""
