"""Temporary files and folders, columns on disk, packed values, and atomic replacement of output folders."""
