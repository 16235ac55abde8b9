"""What is computed inside the engine? Bounded rows become whole numbers per cell."""
