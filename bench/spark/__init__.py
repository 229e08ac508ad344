"""Topics as Spark tables beside Spark's own files, and streams beside their floor."""
