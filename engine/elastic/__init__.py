"""Elastic ETL+Q: limits stated by a person, and nodes added and removed to keep them (the elastic paper)."""
