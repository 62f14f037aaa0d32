"""Specifications of metrics, groups and options, independent of data: checked arguments as frozen values."""
