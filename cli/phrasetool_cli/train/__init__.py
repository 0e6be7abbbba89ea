"""What `phrasetool train` takes and does, for each kind of model."""
