"""Shared parts: checks of arguments and files, the archive format, wording of messages, lazy loading."""
