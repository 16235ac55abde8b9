"""Where do numbers end up? On the asked-for side: exact, rounded, enclosed."""
