"""Programs on eight virtual CPU devices, in processes of their own: the number of devices is fixed at the first use."""

import subprocess
import sys
import textwrap

HEAD = """
import numpy as np
import morphax as jax, morphax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 8)
from morphax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 4), ("x", "y"))
a = np.arange(128, dtype="float32").reshape(8, 16) / 50
b = np.arange(64, dtype="float32").reshape(16, 4) / 50
def on(spec): return NamedSharding(mesh, spec)
"""


def run(program):
    code = HEAD + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_values_survive_every_placement():
    run("""
    for spec in (P(), P("x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x"))):
        x = jax.device_put(a, on(spec))
        assert np.array_equal(np.asarray(x), a), spec
        assert x.sharding.spec == spec and x.committed
        assert len(x.addressable_shards) == 8
        for shard in x.addressable_shards:
            assert np.array_equal(np.asarray(shard.data), a[shard.index]), spec
        for other in (P("y"), P(None, "x"), P()):
            y = jax.device_put(x, on(other))
            assert np.array_equal(np.asarray(y), a) and y.sharding.spec == other
        back = jax.device_put(x, jax.devices()[3])
        assert np.array_equal(np.asarray(back), a) and back.devices() == {jax.devices()[3]}
    """)


def test_computation_follows_data():
    run("""
    A, B = jax.device_put(a, on(P("x", "y"))), jax.device_put(b, on(P("y", None)))
    f = jax.jit(lambda a, b: jnp.tanh(a @ b))
    for _ in range(3):
        r = f(A, B)
        assert r.sharding.spec == P("x"), r.sharding
        np.testing.assert_allclose(r, np.tanh(a @ b), rtol=1e-5)
    assert (A * 2 + 1).sharding.spec == P("x", "y")
    np.testing.assert_allclose(jnp.sum(A), a.sum(), rtol=1e-5)
    g = jax.jit(jax.grad(lambda a, b: jnp.sum(jnp.tanh(0.05 * (a @ b)))))  # where 1 - tanh² does not cancel
    np.testing.assert_allclose(g(A, B), g(a, b), rtol=1e-4, atol=1e-6)
    v = jax.vmap(lambda r: jnp.sum(r * r))(A)
    np.testing.assert_allclose(v, (a * a).sum(1), rtol=1e-5)
    assert "all-reduce" in f.lower(A, B).compile().as_text()
    """)


def test_shardings_of_arguments_and_results():
    run("""
    h = jax.jit(lambda x: x * 2, in_shardings=on(P("x")), out_shardings=on(P(None, "y")))
    assert h(a).sharding.spec == P(None, "y")
    np.testing.assert_array_equal(h(a), a * 2)
    k = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, on(P("x", "y"))) + 1)
    assert k(a).sharding.spec == P("x", "y")
    np.testing.assert_array_equal(k(a), a * 2 + 1)
    with mesh:
        assert jax.device_put(a, P("y")).sharding.spec == P("y")
    """)


def test_a_program_of_one_device_beside_programs_of_many():
    run("""
    A = jax.device_put(a, on(P("x")))
    assert len((A + 1).devices()) == 8 and len((jnp.asarray(a) + 1).devices()) == 1
    one = jax.device_put(a, jax.devices()[1])
    try:
        A + one
        raise SystemExit("not refused")
    except ValueError as error:
        assert "different devices" in str(error)
    np.testing.assert_array_equal(A + a, a + a)
    """)


def test_errors_name_the_shape_the_spec_and_the_mesh():
    lines = run("""
    for spec in (P("x"), P("z"), P("x", "x"), P("x", None, "y")):
        try:
            jax.device_put(np.ones((3, 4)), on(spec))
        except ValueError as error:
            print(str(error).split(".")[0])
    try:
        jax.device_put(a, P("x"))
    except ValueError as error:
        print(error)
    """)
    assert "divides axis 0 of the array of shape (3, 4) into 2 parts" in lines[0]
    assert "names the axis 'z'" in lines[1]
    assert "twice" in lines[2]
    assert "has 3 entries" in lines[3]
    assert "needs a mesh, and none is set" in lines[4]


def test_many_programs_with_collectives_in_flight():
    run("""
    A = jax.device_put(a, on(P("x", "y")))
    f = jax.jit(lambda x: x - jnp.sum(x) * 1e-6)
    for _ in range(200):
        A = f(A)
    A.block_until_ready()
    """)


def test_shard_map_and_its_collectives():
    run("""
    from morphax import lax
    def f(a):
        return (lax.psum(a, "y"), lax.pmean(a, "x"), lax.pmax(a, ("x", "y")), lax.all_gather(a, "x"),
                lax.ppermute(a, "y", [(0, 1), (1, 0)]), lax.axis_index(("x", "y"))[None],
                lax.psum_scatter(a, "y", scatter_dimension=0, tiled=True), lax.all_to_all(a, "y", 0, 1, tiled=True))
    specs = (P("x"), P(None, "y"), P(), P(None, None, "y"), P("x", "y"), P(("x", "y")), P(("x", "y")), P("x", "y"))
    g = jax.shard_map(f, mesh=mesh, in_specs=P("x", "y"), out_specs=specs, check_vma=False)
    blocks = a.reshape(2, 4, 4, 4)  # x, row, y, column
    for r in (g(a), jax.jit(g)(a), jax.jit(g)(jax.device_put(a, on(P("x", "y"))))):
        np.testing.assert_allclose(r[0], blocks.sum(2).reshape(8, 4), rtol=1e-6)
        np.testing.assert_allclose(r[1], blocks.mean(0).reshape(4, 16), rtol=1e-6)
        np.testing.assert_allclose(r[2], blocks.max((0, 2)), rtol=1e-6)
        np.testing.assert_allclose(r[3], blocks.reshape(2, 4, 16), rtol=1e-6)
        moved = np.zeros_like(blocks)
        moved[:, :, 1], moved[:, :, 0] = blocks[:, :, 0], blocks[:, :, 1]
        np.testing.assert_allclose(r[4], moved.reshape(8, 16))
        assert r[5].tolist() == list(range(8))
        np.testing.assert_allclose(r[6], blocks.sum(2).reshape(8, 4), rtol=1e-6)
    """)


def test_gradients_through_shard_map_reduce_once():
    lines = run("""
    from morphax import lax
    w = np.linspace(-1, 1, 48, dtype="float32").reshape(16, 3)
    def local(w, x): return lax.psum(jnp.sum(jnp.tanh(x @ w)), ("x", "y"))
    sharded = jax.shard_map(local, mesh=mesh, in_specs=(P(), P(("x", "y"))), out_specs=P())
    whole = lambda w, x: jnp.sum(jnp.tanh(x @ w))
    np.testing.assert_allclose(sharded(w, a), whole(w, a), rtol=1e-5)
    for argnum in (0, 1):
        want = jax.grad(whole, argnum)(w, a)
        for got in (jax.grad(sharded, argnum)(w, a), jax.jit(jax.grad(sharded, argnum))(w, a)):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    second = lambda f: jax.grad(lambda w: jnp.sum(jnp.sin(jax.grad(f)(w, a))))(w)
    np.testing.assert_allclose(second(sharded), second(whole), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        jax.jvp(lambda w: sharded(w, a), (w,), (w,))[1], jax.jvp(lambda w: whole(w, a), (w,), (w,))[1], rtol=1e-4)
    print(jax.jit(jax.grad(sharded)).lower(w, a).compile().as_text().count("all-reduce("))
    print(jax.jit(jax.grad(sharded, 1)).lower(w, a).compile().as_text().count("all-reduce("))
    """)
    assert lines == ["1", "0"]


def test_a_result_that_differs_must_say_so():
    (line,) = run("""
    try:
        jax.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P())(a)
    except ValueError as error:
        print(error)
    """)
    assert "differs over the mesh axes ('x',)" in line
    assert "psum" in line


def test_the_example_of_the_document():
    lines = run("""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,))
    rng = np.random.default_rng(0)
    host = [(rng.normal(size=(512, 512)).astype("float32") / 23, np.zeros(512, "float32")) for _ in range(2)]
    x, y = rng.normal(size=(16, 512)).astype("float32"), rng.normal(size=(16, 512)).astype("float32")

    def predict(params, inputs):
        for W, b in params:
            outputs = jnp.dot(inputs, W) + b
            inputs = jnp.tanh(outputs)
        return outputs

    def loss(params, batch):
        inputs, targets = batch
        return jnp.sum((predict(params, inputs) - targets) ** 2)

    expected = jax.jit(jax.grad(loss))(host, (x, y))
    jax.set_mesh(mesh)
    params = [(jax.device_put(W, P("data")), jax.device_put(b, P())) for W, b in host]
    for W, b in params:
        print(f"{jax.typeof(W)}")
        print(f"{jax.typeof(b)}")
    inputs, targets = jax.device_put((x, y), P("data"))
    gradfun = jax.jit(jax.grad(loss))
    grads = gradfun(params, (inputs, targets))
    for got, want in zip(jax.tree.leaves(grads), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)
    """)
    assert lines == ["f32[512@data,512]", "f32[512]"] * 2
