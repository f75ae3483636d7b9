"""Static vectors of texts, optional: a further ranking for recall, from a folder that the user names."""
