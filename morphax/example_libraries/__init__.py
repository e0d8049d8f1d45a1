"""Small libraries that show how to write optimizers and neural networks."""
