"""Audits: usual metrics, and tables of groups against a reference; data come in, and what has to be filed goes out."""
