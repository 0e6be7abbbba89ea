"""BLEU and other measures of translations, and tests of their differences."""
