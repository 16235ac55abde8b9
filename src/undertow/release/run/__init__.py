"""How is a release run? Charged once, stored and then written, whatever ends it."""
