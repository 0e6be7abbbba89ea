"""What is done about folders and disks before and while something is written."""
