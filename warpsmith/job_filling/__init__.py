"""What a skeleton leaves open, asked of a model: the question, the reply, and the job file with it."""
