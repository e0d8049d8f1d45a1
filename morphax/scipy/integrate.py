"""Integrals of sampled functions."""
