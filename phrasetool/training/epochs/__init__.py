"""What trainings in epochs have in common."""
