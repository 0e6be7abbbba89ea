"""The gated mean-max attention encoder."""
