"""Parts that all HTML reports share: figures, tables and the frame of a page."""
