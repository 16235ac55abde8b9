"""What do `where` and derived columns mean? The same on every engine."""
