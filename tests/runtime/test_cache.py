"""The disk cache: what is stored comes back, and nothing else does, whatever happens to the files."""

import errno
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import pytest

from morphax.runtime import cache
from morphax.support import config

KEY = "0123456789abcdef" * 4
PROGRAM = bytes(range(256)) * 40


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "_folders", {})
    monkeypatch.setattr(cache, "_failed", set())
    monkeypatch.setattr(cache, "_credit", None)
    path = tmp_path / "programs"
    flags = {config.compilation_cache_dir: str(path), config.enable_compilation_cache: True}  # for all threads
    before = {flag: flag.value for flag in flags}
    for flag, value in flags.items():
        flag.set_global(value)
    yield path
    for flag, value in before.items():
        flag.set_global(value)


def entry(folder: pathlib.Path, key: str = KEY) -> pathlib.Path:
    return folder / f"{key}.program"


def test_what_is_stored_comes_back(folder):
    assert cache.load(KEY) is None
    cache.store(KEY, PROGRAM)
    assert cache.load(KEY) == PROGRAM
    assert cache.load(KEY[::-1]) is None
    cache.store(KEY, b"another")
    assert cache.load(KEY) == b"another"
    cache.forget(KEY)
    cache.forget(KEY)
    assert cache.load(KEY) is None


def test_empty_program_is_a_program(folder):
    cache.store(KEY, b"")
    assert cache.load(KEY) == b""


def test_only_the_owner_has_rights(folder):
    cache.store(KEY, PROGRAM)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert entry(folder).stat().st_mode & 0o777 == 0o600
    assert [p.name for p in folder.iterdir()] == [entry(folder).name]


@pytest.mark.parametrize("at", [0, 7, 8, 20, 39, 40, 41, 60, -2, -1])
@pytest.mark.parametrize("flip", [0x01, 0x80])
def test_changed_byte_is_noticed_and_the_entry_rewritten(folder, at, flip):
    cache.store(KEY, PROGRAM)
    content = bytearray(entry(folder).read_bytes())
    content[at] ^= flip
    entry(folder).write_bytes(content)
    assert cache.load(KEY) is None
    assert not entry(folder).exists()
    cache.store(KEY, PROGRAM)
    assert cache.load(KEY) == PROGRAM


@pytest.mark.parametrize("length", [0, 1, 8, 39, 40, 41, -1])
def test_truncated_entry_is_absent(folder, length):
    cache.store(KEY, PROGRAM)
    entry(folder).write_bytes(entry(folder).read_bytes()[:length])
    assert cache.load(KEY) is None
    assert not entry(folder).exists()


def test_longer_entry_is_absent(folder):
    cache.store(KEY, PROGRAM)
    entry(folder).write_bytes(entry(folder).read_bytes() + b"x")
    assert cache.load(KEY) is None


def test_entry_under_another_name_is_absent(folder):
    cache.store(KEY, PROGRAM)
    entry(folder).rename(entry(folder, KEY[::-1]))
    assert cache.load(KEY[::-1]) is None


def test_entry_that_is_a_folder_costs_one_warning(folder):
    entry(folder).mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert cache.load(KEY) is None
    assert cache.load(KEY) is None
    cache.store(KEY, PROGRAM)


def test_enabled_obeys_the_flags(folder):
    assert cache.enabled()
    with config.enable_compilation_cache(False):
        assert not cache.enabled()
    with config.compilation_cache_max_size(0):
        assert not cache.enabled()


def test_small_programs_are_not_kept_where_the_flag_says_so(folder):
    with config.persistent_cache_min_entry_size_bytes(len(PROGRAM) + 1):
        cache.store(KEY, PROGRAM)
    assert cache.load(KEY) is None


def test_folder_writable_by_others_is_refused_with_one_warning(folder):
    folder.mkdir()
    folder.chmod(0o770)
    with pytest.warns(RuntimeWarning, match="others may write there.*770.*chmod"):
        assert not cache.enabled()
    assert not cache.enabled()
    cache.store(KEY, PROGRAM)
    assert cache.load(KEY) is None
    assert list(folder.iterdir()) == []


def test_folder_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    owner = 1000 + folder.stat().st_uid
    os.chown(folder, owner, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: owner)
    with pytest.warns(RuntimeWarning, match="belongs to user"):
        assert not cache.enabled()


def test_folder_that_cannot_be_made_is_no_cache(folder):
    folder.write_text("a file")
    with pytest.warns(RuntimeWarning, match="not kept on disk"):
        assert not cache.enabled()
    cache.store(KEY, PROGRAM)


def test_address_of_a_bucket_is_no_cache(folder):
    with (
        config.compilation_cache_dir("gs://bucket/programs"),
        pytest.warns(RuntimeWarning, match="only be in a local folder"),
    ):
        assert not cache.enabled()


def test_folder_for_reading_only_gives_what_it_has(folder, monkeypatch):
    def read_only(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    cache.store(KEY, PROGRAM)
    monkeypatch.setattr(os, "utime", read_only)
    monkeypatch.setattr(os, "open", read_only)
    assert cache.load(KEY) == PROGRAM
    with pytest.warns(RuntimeWarning, match="Read-only file system"):
        cache.store(KEY[::-1], PROGRAM)
    cache.store(KEY[::-1], PROGRAM)


def test_full_disk_costs_one_warning_and_leaves_nothing(folder, monkeypatch):
    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    cache.store(KEY, PROGRAM)
    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        cache.store(KEY[::-1], PROGRAM)
    cache.store(KEY[::-1], PROGRAM)
    assert [p.name for p in folder.iterdir()] == [entry(folder).name]
    assert cache.load(KEY) == PROGRAM


def test_errors_are_raised_where_the_flag_says_so(folder):
    folder.write_text("a file")
    with config.raise_persistent_cache_errors(True), pytest.raises(FileExistsError):
        cache.enabled()


def test_removed_folder_is_made_again(folder):
    cache.store(KEY, PROGRAM)
    entry(folder).unlink()
    folder.rmdir()
    assert cache.load(KEY) is None
    cache.store(KEY, PROGRAM)
    cache.store(KEY, PROGRAM)
    assert cache.load(KEY) == PROGRAM


def test_least_recently_used_entries_go_first(folder):
    noise = [os.urandom(8000) for _ in range(64)]
    keys = [f"{i:064x}" for i in range(64)]
    with config.compilation_cache_max_size(16 * 8192):
        for i, (key, program) in enumerate(zip(keys, noise)):
            cache.store(key, program)
            os.utime(entry(folder, key), (i, i))
            if entry(folder, keys[0]).exists():
                assert cache.load(keys[0]) == noise[0]
                os.utime(entry(folder, keys[0]), (i + 0.5, i + 0.5))
    kept = [key for key in keys if entry(folder, key).exists()]
    assert kept[0] == keys[0]
    assert kept[1:] == keys[-len(kept[1:]) :]
    assert 13 <= len(kept) <= 17


def test_sweep_leaves_what_is_not_its_own(folder):
    folder.mkdir(mode=0o700)
    (folder / "jit_f-cache").write_bytes(bytes(100_000))
    left, fresh = folder / "a.0.program-tmp", folder / "b.0.program-tmp"
    left.write_bytes(b"half")
    fresh.write_bytes(b"half")
    os.utime(left, (0, 0))
    cache.sweep(str(folder), 50_000)
    assert sorted(p.name for p in folder.iterdir()) == ["b.0.program-tmp", "jit_f-cache"]


def test_program_larger_than_the_cache_is_not_kept(folder):
    with config.compilation_cache_max_size(1000):
        cache.store(KEY, os.urandom(8000))
    assert cache.load(KEY) is None


def test_no_limit(folder, monkeypatch):
    monkeypatch.setattr(cache, "sweep", None)
    with config.compilation_cache_max_size(-1):
        for i in range(40):
            cache.store(f"{i:064x}", PROGRAM)
    assert len(list(folder.iterdir())) == 40


def test_compare_warns_of_a_difference(folder):
    cache.compare(KEY, PROGRAM)
    cache.store(KEY, PROGRAM)
    cache.compare(KEY, PROGRAM)
    with pytest.warns(RuntimeWarning, match="another program"):
        cache.compare(KEY, PROGRAM + b"x")


def test_threads_see_whole_programs(folder):
    programs = {f"{i:064x}": os.urandom(20_000) for i in range(4)}
    wrong = []

    def work(turns: int) -> None:
        for _ in range(turns):
            for key, program in programs.items():
                cache.store(key, program)
                if cache.load(key) not in (program, None):
                    wrong.append(key)

    threads = [threading.Thread(target=work, args=(20,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(p.stem for p in folder.iterdir()) == sorted(programs)


# ---- several processes ----------------------------------------------------------------------------------------------


def start(code: str, folder: pathlib.Path, **environment: str) -> subprocess.Popen:
    variables = {"JAX_COMPILATION_CACHE_DIR": str(folder), "PYTHONPATH": os.getcwd(), **environment}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "MORPHAX_"))}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        env={**kept, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(code: str, folder: pathlib.Path, **environment: str) -> str:
    process = start(code, folder, **environment)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


STORM = """
import hashlib
from morphax.runtime import cache
for turn in range(150):
    key = hashlib.sha256(str(turn % 5).encode()).hexdigest()
    program = key.encode() * 500
    assert cache.load(key) in (None, program)
    cache.store(key, program)
print(cache.load(key) == program)
"""


def test_processes_see_whole_programs(folder):
    processes = [start(STORM, folder) for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out == "True\n"
    assert all(p.name.endswith(".program") for p in folder.iterdir())


def test_import_makes_no_folder(folder):
    output("import morphax.runtime.cache", folder)
    assert not folder.exists()


def test_default_folder_is_the_users(folder, tmp_path):
    code = "from morphax.runtime import cache; print(cache.folder())"
    found = output(code, folder, JAX_COMPILATION_CACHE_DIR="", HOME=str(tmp_path), XDG_CACHE_HOME="")
    assert pathlib.Path(found.strip()).is_relative_to(tmp_path)
    assert "morphax" in found


def test_surroundings_name_flags_and_the_files_they_are_read_from(folder, tmp_path):
    code = "from morphax.runtime import cache; print(cache.surroundings(), cache.enabled())"
    plain = output(code, folder, XLA_FLAGS="")
    file = tmp_path / "flags"
    file.write_text("--xla_one=1")
    other = output(code, folder, XLA_FLAGS=str(file))
    assert "--xla_one=1" in other
    assert other != plain
    assert output(code, folder, XLA_FLAGS="--xla_one=1") == other


def test_runs_that_dump_go_without(folder):
    code = "from morphax.runtime import cache; print(cache.enabled())"
    assert output(code, folder, XLA_FLAGS="--xla_dump_to=/nowhere") == "False\n"
    assert output(code, folder, XLA_FLAGS="") == "True\n"


def test_no_warning_where_all_is_well(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(KEY, PROGRAM)
        assert cache.load(KEY) == PROGRAM


# ---- programs -------------------------------------------------------------------------------------------------------

PROGRAMS = """
import numpy as np
from morphax.ops import elementwise
from morphax.runtime import backend, compile, jit
wave = jit.jit(lambda x: elementwise.sin(elementwise.add(x, x)))
square = jit.jit(lambda x: elementwise.mul(x, x), donate_argnums=0)
y = wave(np.arange(6, dtype=np.float32))
z = square(y)
assert y.is_deleted()
np.testing.assert_allclose(np.asarray(z), np.sin(2 * np.arange(6)) ** 2, atol=1e-6)
print(compile.count["compiled"], compile.count["from_disk"])
"""


def test_second_process_compiles_nothing(folder):
    assert output(PROGRAMS, folder) == "2 0\n"
    assert output(PROGRAMS, folder) == "0 2\n"
    assert len(list(folder.iterdir())) == 2


def test_damaged_programs_are_compiled_anew_and_mended(folder):
    output(PROGRAMS, folder)
    damaged, _ = sorted(folder.iterdir())
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    assert output(PROGRAMS, folder) == "1 1\n"
    assert output(PROGRAMS, folder) == "0 2\n"


def test_what_xla_cannot_read_is_compiled_anew(folder):
    output(PROGRAMS, folder)
    for file in folder.iterdir():
        cache.store(file.stem, b"not a program")
    assert output(PROGRAMS, folder) == "2 0\n"
    assert output(PROGRAMS, folder) == "0 2\n"


@pytest.mark.parametrize(
    "environment",
    [
        {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"},
        {"NPROC": "1"},
        {"JAX_COMPILATION_CACHE_CHECK_CONTENTS": "1"},
        {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "1"},
        {"JAX_ENABLE_COMPILATION_CACHE": "0"},
    ],
    ids=lambda environment: next(iter(environment)),
)
def test_other_surroundings_compile_anew(folder, environment):
    output(PROGRAMS, folder)
    assert output(PROGRAMS, folder, **environment) == "2 0\n"


def test_quickly_compiled_programs_are_not_kept_where_the_flag_says_so(folder):
    output(PROGRAMS, folder, JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="100")
    assert list(folder.iterdir()) == []


def test_programs_run_where_there_can_be_no_cache(folder):
    folder.write_text("a file")
    process = start(
        PROGRAMS.replace("import numpy", "import warnings\nwarnings.simplefilter('always')\nimport numpy"), folder
    )
    out, err = process.communicate(timeout=120)
    assert out == "2 0\n", err
    assert err.count("RuntimeWarning") == 1
