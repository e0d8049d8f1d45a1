"""The disk cache of compiled programs: on by default, private to its owner, bounded in size, checked at each reading.

An entry is the file `<key>.program`: a mark of eight bytes, the SHA-256 of key and body, and the body, which is the
compressed program. It is written to a temporary file and renamed, so that other processes see all of it or nothing,
and its time of change is the time of its last use. What does not check out counts as absent and is removed. A program
is native code: a folder in which others may write is refused.

Where the file system fails there is no cache, and one warning says why.
"""

import contextlib
import functools
import hashlib
import importlib
import os
import stat
import threading
import time
import warnings
import zlib

from morphax.support import config

_MARK = b"MORPHAX\x01"
_BODY = len(_MARK) + hashlib.sha256().digest_size
_ENTRY, _TEMPORARY = ".program", ".program-tmp"

# Of an executable's 6 to 650 kB level 1 leaves a half to a fifth. Loading one takes 0.5 to 86 ms, of which inflating is
# 1 to 2 %; reading it from a slow disk costs more than that.
_LEVEL = 1

_BLOCK = 4096  # bytes; a file takes up whole ones
_SWEEPS = 16  # sweeps while as many bytes are written as the cache may hold
_KEPT = 7 / 8  # what a sweep leaves of the largest size
_STALE = 3600  # seconds, after which the writer of a temporary file must have died

_lock = threading.Lock()
_folders: dict[str | None, str | None] = {}  # value of the flag -> folder, None where it cannot be used; few
_failed: set[str] = set()  # folders that the user was warned of: nothing more is written there
_credit: float | None = None  # fraction of the way to the next sweep that is left


def enabled() -> bool:
    """Whether programs are looked up and kept: the flags ask for it, and there is a folder for them.

    A run that dumps what the compiler does has to compile, so it goes without.
    """
    return (
        config.enable_compilation_cache.value
        and config.compilation_cache_max_size.value != 0
        and b"xla_dump" not in surroundings()
        and folder() is not None
    )


@functools.cache  # XLA too reads these once
def surroundings() -> bytes:
    """What of the process's surroundings compiled code depends on: flags, and how many processors it may use."""
    flags = os.environ.get("XLA_FLAGS", "").strip()
    if flags and not flags.startswith("-"):  # the name of a file with flags
        with contextlib.suppress(OSError), open(flags, encoding="utf-8", errors="replace") as file:
            flags = file.read()
    others = [os.environ.get(name, "") for name in ("LIBTPU_INIT_ARGS", "NPROC", "PJRT_NPROC")]
    return repr((flags, *others, _processors())).encode()


def _processors() -> int:
    # XLA splits loops into as many parts; the topology's fingerprint does not tell.
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


# ---- the folder -----------------------------------------------------------------------------------------------------


def folder() -> str | None:
    """The folder of the cache, made where it is missing; None where there can be none."""
    chosen = config.compilation_cache_dir.value
    if chosen not in _folders:
        with _lock:
            if chosen not in _folders:
                _folders[chosen] = _prepared(chosen)
    return _folders[chosen]


def _prepared(chosen: str | None) -> str | None:
    path = chosen or "the user's cache folder"
    try:
        path = _path(chosen)
        os.makedirs(path, mode=0o700, exist_ok=True)
        _refuse_shared(path)
    except OSError as error:
        _fail(path, error)
        return None
    return path


def _path(chosen: str | None) -> str:
    if chosen is None:
        # Imported here since it takes 7 ms, which a process that compiles nothing need not pay.
        path = os.path.join(importlib.import_module("platformdirs").user_cache_dir("morphax"), "programs")
        if not os.path.isabs(path):  # no HOME
            raise FileNotFoundError("this user has no home folder")
        return path
    if "://" in chosen:
        raise NotADirectoryError("the cache can only be in a local folder")
    return os.path.abspath(os.path.expanduser(chosen))


def _refuse_shared(path: str) -> None:
    status = os.stat(path)
    if status.st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"the folder belongs to user {status.st_uid}, not to this one ({os.geteuid()})")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise PermissionError(
            f"others may write there (its mode is {mode:o}), and programs are native code; chmod go-w it"
        )


def _fail(path: str, error: OSError) -> None:
    if config.raise_persistent_cache_errors.value:
        raise error
    if path not in _failed:
        _failed.add(path)
        warnings.warn(
            f"compiled programs are not kept on disk, in {path}: {error}. "
            "Set JAX_COMPILATION_CACHE_DIR to a folder of your own, or JAX_ENABLE_COMPILATION_CACHE=0.",
            RuntimeWarning,
            stacklevel=2,
        )


# ---- entries --------------------------------------------------------------------------------------------------------


def load(key: str) -> bytes | None:
    """The program kept under `key`; None where there is none, or what is there was changed since it was written."""
    at = folder()
    if at is None:
        return None
    try:
        with open(os.path.join(at, key + _ENTRY), "rb") as file:
            content = file.read()
            with contextlib.suppress(OSError):  # a folder for reading only is a cache too
                os.utime(file.fileno())
    except FileNotFoundError:
        return None
    except OSError as error:
        _fail(at, error)
        return None
    program = _opened(key, content)
    if program is None:
        forget(key)
    return program


def store(key: str, program: bytes) -> None:
    """Keep a program under `key`, in place of what is there."""
    at = folder()
    if at is None or at in _failed or len(program) < config.persistent_cache_min_entry_size_bytes.value:
        return
    content = _closed(key, program)
    limit = config.compilation_cache_max_size.value
    if 0 <= limit < len(content):
        return
    try:
        _write(os.path.join(at, key), content)
        if limit > 0 and _due(len(content), limit):
            sweep(at, limit)
    except FileNotFoundError:  # somebody removed the folder: the next look makes it again
        _folders.clear()
    except OSError as error:
        _fail(at, error)


def compare(key: str, program: bytes) -> None:
    """Warn if another program than this one is kept under `key`."""
    kept = load(key)
    if kept is not None and kept != program:
        message = f"the compiler made another program than the one that is kept on disk as {key}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def forget(key: str) -> None:
    """Remove the entry of `key`, if there is one."""
    at = folder()
    if at is not None:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(at, key + _ENTRY))


def _closed(key: str, program: bytes) -> bytes:
    body = zlib.compress(program, _LEVEL)
    return b"".join((_MARK, hashlib.sha256(key.encode() + body).digest(), body))


def _opened(key: str, content: bytes) -> bytes | None:
    body = content[_BODY:]
    if content[:_BODY] != _MARK + hashlib.sha256(key.encode() + body).digest():
        return None
    try:
        return zlib.decompress(body)
    except zlib.error:
        return None


def _write(path: str, content: bytes) -> None:
    temporary = f"{path}.{os.urandom(8).hex()}{_TEMPORARY}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path + _ENTRY)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


# ---- size -----------------------------------------------------------------------------------------------------------


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _due(size: int, limit: int) -> bool:
    """Whether to look at the size of the whole after `size` bytes more; starts anywhere, as most runs are short."""
    global _credit
    with _lock:
        if _credit is None:
            _credit = int.from_bytes(os.urandom(4), "little") / 2**32
        _credit -= _blocks(size) * _SWEEPS / limit
        if _credit >= 0:
            return False
        _credit = 1.0
        return True


def sweep(at: str, limit: int) -> None:
    """Remove the entries that were not used for longest, where all take up more than `limit` bytes in the folder `at`.

    Files that processes left half written go too; files that are not the cache's own stay.
    """
    entries: list[tuple[int, int, str]] = []
    with os.scandir(at) as files:
        for file in files:
            if file.name.endswith((_ENTRY, _TEMPORARY)):
                with contextlib.suppress(FileNotFoundError):
                    status = file.stat(follow_symlinks=False)
                    entries.append((status.st_mtime_ns, _blocks(status.st_size), file.path))
    entries.sort()
    total = sum(size for _, size, _ in entries)
    wanted = total if total <= limit else int(limit * _KEPT)
    stale = time.time_ns() - _STALE * 10**9
    for used, size, path in entries:
        if total > wanted or (used < stale and path.endswith(_TEMPORARY)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
