"""The methods of PySpark that `enable` replaces, and their replacements."""
