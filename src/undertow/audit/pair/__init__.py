"""Audits of a pair of inputs: one event that tells them apart, by trials fixed or not.

The runs are drawn, made into rows of numbers, scored; a pair and an event are chosen on
one half, and counted on the other.
"""
