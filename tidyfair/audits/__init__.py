"""Audits: the usual metrics and disparities for a kind of predictions."""
