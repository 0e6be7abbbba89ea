"""Trained, saved, loadable scorers; a file each.  `storage.load_model` finds the right one for a folder."""
