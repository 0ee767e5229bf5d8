"""Work on a whole table that needs its log and its files, and no Spark: VACUUM, RESTORE, checks, repairs, rows."""
