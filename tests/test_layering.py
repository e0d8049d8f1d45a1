"""The layers of the package: imports go downward, stand at the top of the file, and form no circle."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "morphax"
LAYERS = (
    ("support",),
    ("ir",),
    ("ops",),
    ("transforms",),
    ("control",),
    ("runtime",),
    ("numpy", "scipy", "random", "nn", "image", "sparse"),
)
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def layer(module: str) -> int:
    part = (module.split(".") + [""])[1]
    return next((i for i, names in enumerate(LAYERS) if part in names), len(LAYERS))


def imports(module: str) -> list[tuple[str, bool]]:
    """(imported module, whether inside a function) for each import of a module of the package."""
    found = []

    def visit(node: ast.AST, inside: bool) -> None:
        for child in ast.iter_child_nodes(node):
            deeper = inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            if isinstance(child, ast.Import):
                found.extend((alias.name, inside) for alias in child.names if alias.name in MODULES)
            elif isinstance(child, ast.ImportFrom) and child.module:
                for alias in child.names:
                    full = f"{child.module}.{alias.name}"
                    target = full if full in MODULES else child.module
                    if target in MODULES and target != module:
                        found.append((target, inside))
            if not typing_only:
                visit(child, deeper)

    visit(ast.parse(MODULES[module].read_text()), False)
    return found


def order_in_folder(folder: str) -> list[str]:
    """Modules of a folder in the order in which its docstring names them, lowest first."""
    text = ast.get_docstring(ast.parse(MODULES[folder].read_text())) or ""
    names = [
        m.rsplit(".", 1)[1] for m in MODULES if m.startswith(folder + ".") and m.count(".") == folder.count(".") + 1
    ]
    places = {name: text.find(name) for name in names}
    return sorted((n for n in names if places[n] >= 0), key=lambda n: places[n])


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_downward(module: str) -> None:
    for target, _ in imports(module):
        assert layer(target) <= layer(module), f"{module} imports {target} of a higher layer"


@pytest.mark.parametrize("module", MODULES)
def test_no_import_inside_a_function(module: str) -> None:
    if MODULES[module].name == "__init__.py":
        return  # public names are loaded lazily there
    for target, inside in imports(module):
        assert not inside, f"{module} imports {target} inside a function"


def test_no_circle() -> None:
    edges = {m: {t for t, _ in imports(m)} for m in MODULES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"circle: {' -> '.join((*path, module))}"
        if module in done:
            return
        for target in edges[module]:
            visit(target, (*path, module))
        done.add(module)

    for module in MODULES:
        visit(module, ())


@pytest.mark.parametrize("folder", ["support", "ir", "ops", "transforms", "control", "runtime"])
def test_folders_are_ordered(folder: str) -> None:
    order = order_in_folder(f"morphax.{folder}")
    for position, name in enumerate(order):
        for target, _ in imports(f"morphax.{folder}.{name}"):
            other = target.rsplit(".", 1)[1]
            if target.startswith(f"morphax.{folder}.") and other in order:
                assert order.index(other) < position, f"{folder}/{name}.py imports {other}.py, which stands above it"
