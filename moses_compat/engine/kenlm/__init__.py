"""Binary language models of kenlm."""
