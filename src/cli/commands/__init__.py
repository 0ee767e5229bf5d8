"""The commands, one in each file; `group` lists them."""
