"""What is shown of models: how good they are, and what is near by their vectors."""
