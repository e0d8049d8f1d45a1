"""Flags: values, scopes, the environment, and messages."""

import os
import subprocess
import sys
import threading

import pytest

from morphax.support import config


@pytest.fixture
def restored():
    before = {flag: flag.get_global() for flag in config.FLAGS.values()}
    yield
    for flag, value in before.items():
        if flag.get_global() != value:
            flag.set_global(value)


def test_table_is_whole():
    for name, flag in config.FLAGS.items():
        assert getattr(config, name) is flag
        assert flag.name == name
        assert flag.raw.name == name
        assert flag.doc.endswith(".")
        assert flag.default is None or flag.parse(flag.default) == flag.default
        assert not (flag.traced and flag.name == "transfer_guard")
    assert len({flag.public_name for flag in config.FLAGS.values()}) == len(config.FLAGS)


def test_update_and_read(restored):
    config.config.update("jax_random_seed_offset", 7)
    assert config.random_seed_offset.value == 7
    assert config.config.jax_random_seed_offset == 7
    assert config.config.read("jax_random_seed_offset") == 7
    assert config.config.values["jax_random_seed_offset"] == 7
    config.config.update("morphax_random_seed_offset", 8)
    assert config.config.jax_random_seed_offset == 8
    assert "jax_random_seed_offset" in dir(config.config)


def test_with_changes_one_thread_and_restores():
    seen = []
    with config.enable_x64(True):
        with config.enable_x64(False):
            assert not config.enable_x64.value
        assert config.enable_x64.value
        assert config.config.x64_enabled
        thread = threading.Thread(target=lambda: seen.append(config.enable_x64.value))
        thread.start()
        thread.join()
    assert seen == [False]
    assert not config.enable_x64.value


def test_with_restores_after_an_error():
    with pytest.raises(KeyError), config.enable_x64():
        raise KeyError
    assert not config.enable_x64.value


def test_override_is_reentrant_and_a_decorator():
    override = config.debug_nans(True)
    with override, override:
        assert config.debug_nans.value
    assert not config.debug_nans.value

    @config.enable_x64()
    def wide(depth):
        return config.enable_x64.value and (depth == 0 or wide(depth - 1))

    assert wide(2)
    assert not config.enable_x64.value


def test_none_is_a_value_of_its_own():
    with config.default_matmul_precision("highest"), config.default_matmul_precision(None):
        assert config.default_matmul_precision.value is None


def test_traced_flags_are_the_trace_context():
    before = config.trace_context()
    hash(before)
    for flag, other in ((config.enable_x64, True), (config.default_matmul_precision, "high"), (config.outline, False)):
        with flag(other):
            assert config.trace_context() != before
    with config.log_compiles(True), config.traceback_filtering("off"):
        assert config.trace_context() == before


def test_transfer_guard_sets_all_three(restored):
    with config.transfer_guard("disallow"):
        assert config.transfer_guard_device_to_host.value == "disallow"
    assert config.transfer_guard_device_to_host.value is None
    config.config.update("jax_transfer_guard", "log")
    assert config.transfer_guard_host_to_device.value == "log"
    assert config.transfer_guard.value == "log"


def test_watch_sees_every_change(restored):
    seen = []
    flag = config.thread_guard
    flag.watch(lambda value: seen.append(("global", value)), lambda value: seen.append(("local", value)))
    try:
        flag.set_global(True)
        with flag(False):
            pass
    finally:
        flag.on_global = flag.on_local = None
    assert seen == [("global", False), ("global", True), ("local", False), ("local", None)]


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("jax_enable_x64", 1, True),
        ("jax_enable_x64", "off", False),
        ("jax_num_cpu_devices", "8", 8),
        ("jax_persistent_cache_min_compile_time_secs", 2, 2.0),
        ("jax_default_device", "cpu", "cpu"),
        ("jax_default_matmul_precision", "BF16_BF16_F32_X3", "BF16_BF16_F32_X3"),
        ("jax_platforms", None, None),
    ],
)
def test_values_are_read_as_the_kind_of_the_flag(restored, name, value, expected):
    config.config.update(name, value)
    found = config.config.read(name)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("jax_enable_x64", "maybe", "Give True or False"),
        ("jax_enable_x64", None, "Give True or False"),
        ("jax_numpy_rank_promotion", "never", "one of 'allow', 'warn', 'raise'"),
        ("jax_default_matmul_precision", "low", "one of 'default', .*, or None"),
        ("jax_num_cpu_devices", 1.5, "Give an int"),
        ("jax_num_cpu_devices", "two", "Give an int"),
        ("jax_default_device", 3, "Give a Device"),
        ("jax_memory_fitting_effort", "much", "Give a float"),
        ("jax_compilation_cache_dir", 3, "Give a str, or None"),
    ],
)
def test_wrong_value_names_the_choices(name, value, message):
    with pytest.raises(ValueError, match=f"config: {name} cannot be .*{message}"):
        config.config.update(name, value)


def test_wrong_name_names_the_nearest():
    with pytest.raises(AttributeError, match=r"no flag 'jax_enable_x65'. The nearest flag is 'jax_enable_x64'"):
        config.config.update("jax_enable_x65", True)
    with pytest.raises(AttributeError, match="nearest flag is 'jax_debug_nans'"):
        _ = config.config.jax_debug_nan
    with pytest.raises(AttributeError, match=r"config.values"):
        config.config.read("qqqqqqqqq")


def test_assignment_names_its_cure():
    with pytest.raises(AttributeError, match=r"Write `config.update.'jax_enable_x64', True.`"):
        config.config.jax_enable_x64 = True


def test_only_bool_flags_default_to_true():
    with pytest.raises(TypeError, match="no value given"):
        config.default_matmul_precision()


@pytest.mark.parametrize(
    "variables, code, output",
    [
        ({"JAX_ENABLE_X64": "1"}, "config.enable_x64.value", "True"),
        ({"JAX_ENABLE_X64": "1", "MORPHAX_ENABLE_X64": "0"}, "config.enable_x64.value", "False"),
        ({"MORPHAX_OUTLINE": "false"}, "config.outline.value", "False"),
        ({"JAX_PLATFORMS": ""}, "config.platforms.value", "None"),
        ({}, "config.config.parse_flags_with_absl()", "None"),
    ],
)
def test_environment(variables, code, output):
    command = [sys.executable, "-c", f"from morphax.support import config; print({code})"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "MORPHAX_"))}
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == output


def test_absl_flags(restored, monkeypatch):
    class Given:
        def __init__(self, value):
            self.value = value
            self.present = False

    class Flags(dict):
        def __call__(self, argv, known_only):
            for arg in argv[1:]:
                name, _, value = arg.removeprefix("--").partition("=")
                self[name].value, self[name].present = value, True

    class AbslFlags:
        FLAGS = Flags()

        @classmethod
        def define(cls, name, default, doc):
            cls.FLAGS[name] = Given(default)

        DEFINE_bool = DEFINE_integer = DEFINE_float = DEFINE_string = define

    monkeypatch.setitem(sys.modules, "absl.flags", AbslFlags)
    monkeypatch.setattr(sys, "argv", ["program", "--jax_random_seed_offset=3"])
    config.config.parse_flags_with_absl()
    assert config.random_seed_offset.value == 3
