"""What other systems can use of a phrase table: candidates of their output words, and terms."""
