"""Procedures shared by tests."""
