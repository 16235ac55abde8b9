"""Which table is read? Files, databases and objects in memory, open on an engine."""
