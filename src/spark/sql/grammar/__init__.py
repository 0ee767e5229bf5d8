"""The grammar of Delta's own statements, which Spark's parser doesn't know: VACUUM, OPTIMIZE, RESTORE and others.

A recursive-descent parser over the tokens of Spark's lexer makes a node (`nodes`) of a statement. Parts that Spark's
parser knows (names, literals, conditions, queries, columns with types) stay text in the node, and go to that parser.
"""
