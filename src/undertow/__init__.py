"""Differential privacy on complex and correlated data."""
