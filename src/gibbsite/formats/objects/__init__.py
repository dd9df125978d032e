"""Models from and to objects of other Python libraries."""
