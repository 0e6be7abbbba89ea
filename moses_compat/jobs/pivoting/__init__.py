"""Tables through a middle language."""
