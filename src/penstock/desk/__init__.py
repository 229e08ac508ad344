"""What people ask of a broker and change in it: verbs, and the rows of answers."""
