"""Studies: questions about prompts that labelled data of others can answer, without any model."""
