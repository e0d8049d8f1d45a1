"""Learn to read 1,797 handwritten digits, then show the ten that the network finds hardest.

    make demo                                   or: python examples/digits.py --seed 1 --epochs 60

The three transforms at work: `grad` of the loss, `jit` of a whole training step, and `vmap` of `grad` for the size of
each example's own gradient. Two pictures go to `out/`: the loss curve and the hardest digits.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits

import morphax as jax
import morphax.numpy as jnp

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LAYERS = (64, 256, 128, 10)
BATCH = 64
RATE = 2e-3  # at the first step; it falls to nothing along a line
NOISE = 0.3  # standard deviation of the noise added to pixels in [0, 1], so that no image is learnt by heart

console = Console(highlight=False)


class Digits(NamedTuple):
    """Images, one row of 64 pixels in [0, 1] each, and their labels 0 to 9; a fifth is held out."""

    images: Any
    labels: Any
    held_images: Any
    held_labels: Any


def load(key: Any) -> Digits:
    digits: Any = load_digits()
    order = np.asarray(jax.random.permutation(key, len(digits.target)))
    images = jnp.asarray(digits.data[order] / 16.0, dtype=jnp.float32)
    labels = jnp.asarray(digits.target[order], dtype=jnp.int32)
    held = len(order) // 5
    return Digits(images[held:], labels[held:], images[:held], labels[:held])


def init(key: Any) -> list[tuple[Any, Any]]:
    """One (weights, bias) pair a layer; weights as He et al. 2015, variance 2 / fan-in."""
    keys = jax.random.split(key, len(LAYERS) - 1)
    params = []
    for key, rows, columns in zip(keys, LAYERS[:-1], LAYERS[1:]):
        weights = jax.random.normal(key, (rows, columns)) * jnp.sqrt(2.0 / rows)
        params.append((weights, jnp.zeros(columns)))
    return params


def predict(params: Any, images: Any) -> Any:
    """Log-probabilities of the ten digits."""
    *hidden, (last_weights, last_bias) = params
    x = images
    for weights, bias in hidden:
        x = jnp.maximum(x @ weights + bias, 0.0)
    scores = x @ last_weights + last_bias
    scores = scores - jnp.max(scores, axis=-1, keepdims=True)
    return scores - jnp.log(jnp.sum(jnp.exp(scores), axis=-1, keepdims=True))


def loss(params: Any, images: Any, labels: Any) -> Any:
    """Mean cross-entropy, in nats."""
    chosen = labels[..., None] == jnp.arange(10)
    return -jnp.mean(jnp.sum(jnp.where(chosen, predict(params, images), 0.0), axis=-1))


def adam(state: Any, grads: Any, rate: Any, count: Any) -> tuple[Any, Any, Any]:
    """One step of Adam (Kingma and Ba 2015, algorithm 1)."""
    params, mean, square = state
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
    rate = rate * jnp.sqrt(1.0 - 0.999**count) / (1.0 - 0.9**count)
    params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, mean, square


@jax.jit
def step(state: Any, key: Any, count: Any, total: Any, images: Any, labels: Any) -> tuple[Any, Any]:
    """The state after step `count` of `total`, and the loss before it."""
    noisy = images + NOISE * jax.random.normal(key, images.shape)
    value, grads = jax.value_and_grad(loss)(state[0], noisy, labels)
    return adam(state, grads, RATE * (1.0 - (count - 1.0) / total), count), value


@jax.jit
def accuracy(params: Any, images: Any, labels: Any) -> Any:
    return jnp.mean(jnp.argmax(predict(params, images), axis=-1) == labels)


@jax.jit
def gradient_norms(params: Any, images: Any, labels: Any) -> Any:
    """How hard each example alone pulls at the weights: the length of its gradient."""
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, images, labels)
    squares = jax.tree.map(lambda g: jnp.sum(jnp.reshape(g, (g.shape[0], -1)) ** 2, axis=-1), grads)
    return jnp.sqrt(sum(jax.tree.leaves(squares)))


def train(digits: Digits, key: Any, epochs: int) -> tuple[Any, list[float]]:
    """Trained parameters and the mean loss of every epoch; prints times and losses on the way."""
    init_key, key = jax.random.split(key)
    params = init(init_key)
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = (params, zeros, zeros)
    batches = len(digits.labels) // BATCH
    curve, seconds = [], []
    text = TextColumn("epochs, loss {task.fields[loss]}")
    bar = Progress(
        TextColumn("training"), BarColumn(), MofNCompleteColumn(), text, TimeElapsedColumn(), console=console
    )
    with bar as progress:
        task = progress.add_task("", total=epochs, loss="")
        for epoch in range(epochs):
            order_key, noise_key, key = jax.random.split(key, 3)
            order = jax.random.permutation(order_key, len(digits.labels))
            total = 0.0
            for index, noise in enumerate(jax.random.split(noise_key, batches)):
                rows = order[index * BATCH : (index + 1) * BATCH]
                images, labels = digits.images[rows], digits.labels[rows]
                start = time.perf_counter()
                count = float(epoch * batches + index + 1)
                state, value = step(state, noise, count, float(epochs * batches), images, labels)
                total += float(value)
                seconds.append(time.perf_counter() - start)
            curve.append(total / batches)
            progress.update(task, advance=1, loss=f"{curve[-1]:.4f}")
    console.print(f"first call  {1e3 * seconds[0]:8.1f} ms   traced, compiled and run once")
    console.print(f"step        {1e3 * float(np.median(seconds[1:])):8.3f} ms   median of {len(seconds) - 1}")
    return state[0], curve


def draw(curve: list[float], images: Any, titles: list[str], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.semilogy(range(1, len(curve) + 1), curve, color="tab:blue")
    axes.set(xlabel="epoch", ylabel="cross-entropy (nats)", title="Training loss")
    axes.grid(alpha=0.3, which="both")
    figure.savefig(out / "loss.png", dpi=150)
    figure, grid = plt.subplots(2, 5, figsize=(8, 4), layout="constrained")
    for axes, image, title in zip(grid.flat, np.asarray(images), titles):
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0.0, vmax=1.0)
        axes.set_title(title, fontsize=9)
        axes.set_axis_off()
    figure.suptitle("The ten held-out digits with the largest gradients")
    figure.savefig(out / "hardest.png", dpi=150)
    plt.close("all")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a multilayer perceptron on handwritten digits.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()

    split_key, train_key = jax.random.split(jax.random.key(options.seed))
    digits = load(split_key)
    console.print(f"{len(digits.labels)} digits to learn from, {len(digits.held_labels)} held out")
    params, curve = train(digits, train_key, options.epochs)
    for epoch in sorted({0, len(curve) // 4, len(curve) // 2, len(curve) - 1}):
        console.print(f"loss        {curve[epoch]:8.6f}      epoch {epoch + 1}")
    score = float(accuracy(params, digits.held_images, digits.held_labels))
    console.print(f"[bold]accuracy    {100 * score:8.2f} %[/]    on the held-out digits")

    norms = np.asarray(gradient_norms(params, digits.held_images, digits.held_labels))
    hardest = np.argsort(-norms)[:10]
    images, labels = digits.held_images[hardest], np.asarray(digits.held_labels)[hardest]
    guesses = np.asarray(jnp.argmax(predict(params, images), axis=-1))
    console.print("\nThe ten hardest, by the norm of their own gradient:")
    hard = list(zip(labels, guesses, norms[hardest]))
    for label, guess, norm in hard:
        verdict = "" if label == guess else f"   [red]read as {guess}[/]"
        console.print(f"  a {label}   {norm:8.3f}{verdict}")
    titles = [f"{label}, read as {guess}\ngradient {norm:.2f}" for label, guess, norm in hard]
    draw(curve, images, titles, options.out)
    console.print(f"\npictures: {options.out / 'loss.png'}, {options.out / 'hardest.png'}")


if __name__ == "__main__":
    main()
