"""What will each query ask, add, answer and cost? Known before any data is read."""
