"""A module that can't be imported."""

raise RuntimeError("the licence has run out")
