"""Interfaces of other readers of traces, for scripts that were written for them."""
