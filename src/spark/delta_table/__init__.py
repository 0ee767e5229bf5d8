"""`DeltaTable` and its builders."""
