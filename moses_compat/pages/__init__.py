"""Parts of HTML reports: figures, tables and the frame of a page, the same for every report."""
