"""Files and folders during long work: temporary ones, columns on disk, packed values, and replaced output folders."""
