"""BLEU and other measures of translations, and whether they differ."""
