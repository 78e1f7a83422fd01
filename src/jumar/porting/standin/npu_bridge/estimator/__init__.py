"""Estimators, hooks and ops."""
