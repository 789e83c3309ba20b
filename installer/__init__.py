"""Builds the Windows installers on Linux; docs/install.md and docs/windows-build.md say how."""
