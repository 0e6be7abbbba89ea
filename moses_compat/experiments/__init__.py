"""Experiments: tables that are never written, their BLEU, and what was done before."""
