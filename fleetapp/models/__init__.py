"""From a model file to verified shards on disk."""
