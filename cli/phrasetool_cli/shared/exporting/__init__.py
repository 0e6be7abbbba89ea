"""What `phrasetool export` takes, does and says."""
