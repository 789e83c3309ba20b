"""An office's own laptops serving large language models."""

__version__ = "0.1.0"
