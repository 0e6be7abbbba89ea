"""The embedded engine: from a bitext to a phrase table, a language model, translations and BLEU, without Moses."""
