"""Ways in which a test can depend on what it does not run: each a small tree, an edit of it, and the tests that then fail."""

from __future__ import annotations

from typing import NamedTuple

LIB = "def value():\n    return 1\n\n\ndef other():\n    return 5\n"
EDIT = {"lib.py": LIB.replace("return 1", "return 2")}


class Trap(NamedTuple):
    """Files beside `lib.py`, an edit, and the tests that fail after it; all pass before it."""

    files: dict[str, str]
    fails: str
    edit: dict[str, str] = EDIT


def _in_one(test: str, fails: str = "test_a.py::test_b", edit: dict[str, str] = EDIT, **files: str) -> Trap:
    """A trap with one file of tests, and other files whose names have `_` for their last dot."""
    named = {".".join(name.rsplit("_", 1)): text for name, text in files.items()}
    return Trap({"test_a.py": f"import lib\n{test}", **named}, fails, edit)


def _in_two(first: str, second: str, fails: str = "test_b.py::test_b", edit: dict[str, str] = EDIT, **files: str) -> Trap:
    """A trap in which the second file's test comes out by what the first one's does."""
    trap = _in_one(first, fails, edit, **files)
    return Trap(trap.files | {"test_b.py": f"import lib\n{second}"}, fails, edit)


STORE = "ITEMS = []\ndef put(x):\n    ITEMS.append(x)\n"
PUTS = "import store\ndef test_a(): store.put(lib.value())\n"
SEES = "import store\ndef test_b(): assert store.ITEMS == [1]\n"
BOTH = "test_a.py::test_a test_b.py::test_b"
ASKS = "import keep\ndef test_a(): assert keep.get() == 1\n"
ASKS_TOO = "import keep\ndef test_b(): assert keep.get() == 1\n"

TRAPS: dict[str, Trap] = {
    # what one test leaves for another
    "a list of a module": _in_two(PUTS, SEES, store_py=STORE),
    "a list of a module, in one file": _in_one(f"{PUTS}{SEES}", store_py=STORE),
    "a list of the file of tests": _in_one("S = []\ndef test_a(): S.append(lib.value())\ndef test_b(): assert S == [1]\n"),
    "an attribute of a class": _in_two(
        "import store\ndef test_a(): store.K.x = lib.value()\n",
        "import store\ndef test_b(): assert store.K.x == 1\n",
        store_py="class K:\n    x = 0\n",
    ),
    "a class that is registered with an abstract class": _in_two(
        "import store\ndef test_a(): store.Shape.register(int if lib.value() == 1 else str)\n",
        "import store\ndef test_b(): assert isinstance(1, store.Shape)\n",
        store_py="import abc\nclass Shape(abc.ABC): pass\n",
    ),
    "an attribute of an object": _in_two(
        "import store\ndef test_a(): store.O.fill(lib.value())\n",
        "import store\ndef test_b(): assert store.O.x == 1\n",
        store_py="class K:\n    def fill(self, x): self.x = x\nO = K()\n",
    ),
    "an object in an object in a dict": _in_two(
        "import store\ndef test_a(): store.D['k'][0].x = lib.value()\n",
        "import store\ndef test_b(): assert store.D['k'][0].x == 1\n",
        store_py="class K: pass\nD = {'k': (K(),)}\n",
    ),
    "a default of a function": _in_two(
        "import store\ndef test_a(): store.put(lib.value())\n",
        "import store\ndef test_b(): assert store.put(7) == [1, 7]\n",
        store_py="def put(x, into=[]):\n    into += [x]\n    return into\n",
    ),
    "a closure": _in_two(
        "import store\ndef test_a(): store.put(lib.value())\n",
        "import store\ndef test_b(): assert store.put(7) == [1, 7]\n",
        store_py="def make():\n    into = []\n    def put(x):\n        into.append(x)\n"
        "        return into\n    return put\nput = make()\n",
    ),
    "an attribute of a function": _in_two(
        "import store\ndef test_a(): store.put.x = lib.value()\n",
        "import store\ndef test_b(): assert store.put.x == 1\n",
        store_py="def put(): pass\nput.x = 0\n",
    ),
    "a counter": _in_two(
        "import store\ndef test_a(): [store.count() for _ in range(lib.value())]\n",
        "import store\ndef test_b(): assert store.count() == 2\n",
        store_py="N = 0\ndef count():\n    global N\n    N += 1\n    return N\n",
    ),
    "a variable of the environment": _in_two(
        "import os\ndef test_a(): os.environ['LEFT'] = str(lib.value())\n",
        "import os\ndef test_b(): assert os.environ.get('LEFT') == '1'\n",
    ),
    "a function that was replaced": _in_two(
        "import store\ndef test_a():\n    x = lib.value()\n    store.get = lambda: x\n",
        "import store\ndef test_b(): assert store.get() == 1\n",
        store_py="def get(): return 0\n",
    ),
    "a module that was replaced": _in_two(
        "import sys, types, store\ndef test_a():\n    sys.modules['store'] = types.SimpleNamespace(x=lib.value())\n",
        "def test_b():\n    import store\n    assert store.x == 1\n",
        store_py="x = 0\n",
    ),
    "a file in the tree": _in_two(
        "def test_a(): open('left.txt', 'w').write(str(lib.value()))\n",
        "def test_b(): assert open('left.txt').read() == '1'\n",
    ),
    "a file in the tree that git ignores": _in_two(
        "def test_a(): open('left.log', 'w').write(str(lib.value()))\n",
        "def test_b(): assert open('left.log').read() == '1'\n",
        _gitignore="*.log\n",
    ),
    "a file outside of the tree": _in_two(
        "def test_a(): open('../left.txt', 'w').write(str(lib.value()))\n",
        "def test_b(): assert open('../left.txt').read() == '1'\n",
    ),
    "a folder in the tree": _in_two(
        "import os\ndef test_a(): os.makedirs(f'left{lib.value()}', exist_ok=True)\n",
        "import os\ndef test_b(): assert not os.path.exists('left2')\n",
    ),
    "an object of a shared fixture": _in_one(
        "import pytest\n@pytest.fixture(scope='module')\ndef s(): return []\n"
        "def test_a(s): s.append(lib.value())\ndef test_b(s): assert s == [1]\n",
    ),
    "an object of a session's fixture": _in_two(
        "def test_a(s): s.append(lib.value())\n",
        "def test_b(s): assert s == [1]\n",
        conftest_py="import pytest\n@pytest.fixture(scope='session')\ndef s(): return []\n",
    ),
    "what begins to be left": _in_two(
        "import store\ndef test_a():\n    if lib.value() == 2: store.put(1)\n",
        "import store\ndef test_b(): assert not store.ITEMS\n",
        store_py=STORE,
    ),
    "what begins to be left in a file": _in_one(
        "S = []\ndef test_a():\n    if lib.value() == 2: S.append(1)\ndef test_b(): assert not S\n",
    ),
    "a thread that goes on": _in_two(
        "import threading, time\nEND = threading.Event()\nGOT = []\n"
        "def test_a(): threading.Thread(target=lambda: (END.wait(9), GOT.append(lib.value())), daemon=True).start()\n",
        "import test_a, time\ndef test_b():\n    test_a.END.set()\n    while not test_a.GOT: time.sleep(0.001)\n"
        "    assert test_a.GOT == [1]\n",
    ),
    # what a test leaves otherwise than before an edit
    "a list that is turned round": _in_two(
        "import store\ndef test_a(): lib.value() == 1 or store.L.reverse()\n",
        "import store\ndef test_b(): assert store.L == [1, 2]\n",
        store_py="L = [1, 2]\n",
    ),
    "another of two equal places": _in_two(
        "import store\ndef test_a(): store.D['a' if lib.value() == 1 else 'b']['x'] = 1\n",
        "import store\ndef test_b(): assert store.D['a'] == {'x': 1}\n",
        store_py="D = {'a': {}, 'b': {}}\n",
    ),
    "a copy instead of an object": _in_two(
        "import store\ndef test_a(): store.X = store.L if lib.value() == 1 else [*store.L]\n",
        "import store\ndef test_b(): assert store.X is store.L\n",
        store_py="L = []\n",
    ),
    "a lambda": _in_two(
        "import store, k\ndef test_a(): k.put(store)\n",
        "import store\ndef test_b(): assert store.get() == 1\n",
        store_py="",
        k_py="def put(module): module.get = lambda: 1\n",
        edit={"k.py": "def put(module): module.get = lambda: 2\n"},
    ),
    "a lock": _in_two(
        "import store, threading\ndef test_a():\n    store.LOCK = threading.Lock()\n"
        "    lib.value() == 1 or store.LOCK.acquire()\n",
        "import store\ndef test_b(): assert not store.LOCK.locked()\n",
        store_py="",
    ),
    "a pattern": _in_two(
        "import store, re\ndef test_a(): store.P = re.compile(str(lib.value()))\n",
        "import store\ndef test_b(): assert store.P.match('1')\n",
        store_py="",
    ),
    "a slot": _in_two(
        "import store\ndef test_a(): store.O = store.K(lib.value())\n",
        "import store\ndef test_b(): assert store.O.x == 1\n",
        store_py="class K:\n    __slots__ = ('x',)\n    def __init__(self, x): self.x = x\n",
    ),
    "what a second test makes of it": Trap(
        {
            "test_a.py": "import lib, store\ndef test_a(): store.X = lib.value()\n",
            "test_b.py": "import store\ndef test_b(): store.Y = [store.X]\n",
            "test_c.py": "import store\ndef test_c(): assert store.Y == [1]\n",
            "store.py": "",
        },
        "test_c.py::test_c",
    ),
    "a test that is gone": Trap(
        {
            "test_a.py": "import lib, store\ndef test_a(): store.X = 1\ndef test_other(): pass\n",
            "test_b.py": "import store\ndef test_b(): assert store.X == 1\n",
            "store.py": "X = 0\n",
        },
        "test_b.py::test_b",
        {"test_a.py": "import lib, store\ndef test_other(): pass\n"},
    ),
    "two tests that change places": Trap(
        {
            "test_a.py": "import store\ndef test_a(): store.X = 1\ndef test_b(): store.X = 2\n",
            "test_c.py": "import store\ndef test_c(): assert store.X == 2\n",
            "store.py": "",
        },
        "test_c.py::test_c",
        {"test_a.py": "import store\ndef test_b(): store.X = 2\ndef test_a(): store.X = 1\n"},
    ),
    # what is computed once
    "a global that is filled once": _in_two(
        ASKS,
        ASKS_TOO,
        BOTH,
        keep_py="import lib\nX = None\ndef get():\n    global X\n    if X is None:\n        X = lib.value()\n    return X\n",
    ),
    "a class that is filled once": _in_two(
        ASKS,
        ASKS_TOO,
        BOTH,
        keep_py="import lib\nclass K:\n    x = None\n    @classmethod\n    def get(cls):\n        if cls.x is None:\n"
        "            cls.x = lib.value()\n        return cls.x\nget = K.get\n",
    ),
    "a cache": _in_two(
        ASKS, ASKS_TOO, BOTH, keep_py="import functools, lib\n@functools.cache\ndef get():\n    return lib.value()\n"
    ),
    "a cache of one's own": _in_two(
        "import keep\ndef test_a(): assert keep.get(1) == 1\n",
        "import keep\ndef test_b(): assert keep.get(1) == 1\n",
        BOTH,
        keep_py="import lib\nC = {}\ndef get(x):\n    if x not in C:\n        C[x] = lib.value()\n    return C[x]\n",
    ),
    "a cached property of a shared object": _in_two(
        "import keep\ndef test_a(): assert keep.O.x == 1\n",
        "import keep\ndef test_b(): assert keep.O.x == 1\n",
        BOTH,
        keep_py="import functools, lib\nclass K:\n    @functools.cached_property\n"
        "    def x(self): return lib.value()\nO = K()\n",
    ),
    "an import in a function": _in_two(
        "def test_a():\n    import late\n    assert late.X == 1\n",
        "def test_b():\n    import late\n    assert late.X == 1\n",
        BOTH,
        late_py="import lib\nX = lib.value()\n",
    ),
    "a submodule that another test imports": _in_two(
        "import pkg\ndef test_a():\n    if lib.value() == 1:\n        import pkg.sub\n",
        "import pkg\ndef test_b(): assert pkg.sub\n",
    ),
    # what runs outside of tests
    "a constant that is computed": _in_one("import k\ndef test_b(): assert k.X == 1\n", k_py="import lib\nX = lib.value()\n"),
    "a decorator": _in_one(
        "import k\n@k.made\ndef f(): pass\ndef test_b(): assert f == 1\n", k_py="import lib\ndef made(f): return lib.value()\n"
    ),
    "a class that is made": _in_one(
        "import k\ndef test_b(): assert k.K.x == 1\n",
        k_py="import lib\nclass M(type):\n    def __init__(cls, *a): cls.x = lib.value()\nclass K(metaclass=M): pass\n",
    ),
    "a function that a function made": _in_one(
        "import k\ndef test_b(): assert k.f() == 1\n",
        k_py="def make():\n    return lambda: 1\nf = make()\n",
        edit={"k.py": "def make():\n    return lambda: 2\nf = make()\n"},
    ),
    "parameters of tests": _in_one(
        "import pytest\n@pytest.mark.parametrize('x', [lib.value()])\ndef test_b(x): assert x == 1\n", "test_a.py::test_b[2]"
    ),
    "tests that are generated": _in_one(
        "def pytest_generate_tests(metafunc): metafunc.parametrize('x', range(lib.value()))\ndef test_b(x): assert x == 0\n",
        "test_a.py::test_b[1]",
    ),
    "a conftest": _in_one(
        "def test_b(x): assert x == 1\n",
        conftest_py="import lib, pytest\n@pytest.fixture\ndef x(): return lib.value()\n",
    ),
    "a hook of a conftest": _in_one(
        "def test_b(): assert lib.X == 1\n", conftest_py="import lib\ndef pytest_runtest_setup(): lib.X = lib.value()\n"
    ),
    "a fixture of a session": _in_two(
        "def test_a(x): assert x == 1\n",
        "def test_b(x): assert x == 1\n",
        BOTH,
        conftest_py="import lib, pytest\n@pytest.fixture(scope='session')\ndef x(): return lib.value()\n",
    ),
    "setup_module": _in_one("def setup_module(): lib.x = lib.value()\ndef test_a(): pass\ndef test_b(): assert lib.x == 1\n"),
    "setUpClass": _in_one(
        "import unittest\nclass T(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls): cls.x = lib.value()\n"
        "    def test_a(self): assert self\n    def test_b(self): assert self.x == 1\n",
        "test_a.py::T::test_b",
    ),
    "a generator that goes on": _in_one(
        "import k, pytest\n@pytest.fixture(scope='module')\ndef g(): return k.gen()\n"
        "def test_a(g): assert next(g) == 0\ndef test_b(g): assert next(g) == 1\n",
        k_py="def gen():\n    yield 0\n    yield 1\n",
        edit={"k.py": "def gen():\n    yield 0\n    yield 2\n"},
    ),
    # code that is reached as text or as an object
    "its source": _in_one("import inspect\ndef test_b(): assert 'return 1' in inspect.getsource(lib.value)\n"),
    "its source twice": _in_one(
        "import inspect\ndef test_a(): assert 'return 1' in inspect.getsource(lib.value)\n"
        "def test_b(): assert 'return 1' in inspect.getsource(lib.value)\n",
        "test_a.py::test_a test_a.py::test_b",
    ),
    "its file": _in_one("def test_b(): assert 'return 1' in open('lib.py').read()\n"),
    "its loader": _in_one("def test_b(): assert 'return 1' in lib.__loader__.get_source('lib')\n"),
    "a resource": _in_one(
        "import importlib.resources, pkg\n"
        "def test_b(): assert 'return 1' in (importlib.resources.files(pkg) / 'sub.py').read_text()\n",
        edit={"pkg/sub.py": "X = 1\n\n\ndef f():\n    return 2\n"},
    ),
    "the source that an import read": _in_one(
        "import k\ndef test_b(): assert 'return 1' in k.TEXT\n", k_py="TEXT = open('lib.py').read()\n"
    ),
    "its code": _in_one("def test_b(): assert 1 in lib.value.__code__.co_consts\n"),
    "its instructions": _in_one(
        "import dis\ndef test_b(): assert 1 in [i.argval for i in dis.get_instructions(lib.value) if i.opcode == 100]\n"
    ),
    "its text that is run": _in_one(
        "def test_b():\n    found = {}\n    exec(open('lib.py').read(), found)\n    assert found['value']() == 1\n"
    ),
    "its file that is run": _in_one("import runpy\ndef test_b(): assert runpy.run_path('lib.py')['value']() == 1\n"),
    "its file that is loaded again": _in_one(
        "import importlib.util as u\ndef test_b():\n    spec = u.spec_from_file_location('x', 'lib.py')\n"
        "    m = u.module_from_spec(spec)\n    spec.loader.exec_module(m)\n    assert m.value() == 1\n"
    ),
    "its module that is loaded again": _in_one("import importlib\ndef test_b(): assert importlib.reload(lib).value() == 1\n"),
    # other processes
    "a process": _in_one(
        "import subprocess, sys\n"
        "def test_b(): assert subprocess.check_output([sys.executable, '-c', 'import lib; print(lib.value())']) == b'1\\n'\n"
    ),
    "a fork": _in_one(
        "import os\ndef test_b():\n    pid = os.fork()\n    if not pid: os._exit(lib.value())\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1\n"
    ),
    "a process of multiprocessing": _in_one(
        "import multiprocessing as m, k\ndef test_b():\n    p = m.get_context('spawn').Process(target=k.f)\n"
        "    p.start()\n    p.join()\n    assert p.exitcode == 1\n",
        k_py="import lib, sys\ndef f(): sys.exit(lib.value())\n",
    ),
    "a thread": _in_one(
        "import threading\ndef test_b():\n    got = []\n    t = threading.Thread(target=lambda: got.append(lib.value()))\n"
        "    t.start()\n    t.join()\n    assert got == [1]\n"
    ),
    "a coroutine": _in_one(
        "import asyncio, k\ndef test_b(): assert asyncio.run(k.f()) == 1\n",
        k_py="async def f():\n    return 1\n",
        edit={"k.py": "async def f():\n    return 2\n"},
    ),
    # what is no body of a function
    "a docstring": _in_one(
        "def test_b(): assert lib.value.__doc__ is None\n", edit={"lib.py": LIB.replace("return 1", "'new'\n    return 1")}
    ),
    "a function's kind": _in_one(
        "import inspect, k\ndef test_b(): assert not inspect.isgeneratorfunction(k.f)\n",
        k_py="def f():\n    return 1\n",
        edit={"k.py": "def f():\n    yield 1\n"},
    ),
    "a default": _in_one(
        "import k\ndef test_b(): assert k.f.__defaults__ == (1,)\n",
        k_py="def f(x=1): pass\n",
        edit={"k.py": "def f(x=2): pass\n"},
    ),
    "a closure over a class": _in_one(
        "import k\ndef test_b(): assert not k.K.f.__closure__\n",
        k_py="class K:\n    def f(self): return 1\n",
        edit={"k.py": "class K:\n    def f(self): return super() and 1\n"},
    ),
    "a constant by a name in a file": _in_one(
        "import k\ndef test_b(): assert open('t.txt').read().format(k=k) == '1'\n",
        k_py="X = 1\n",
        t_txt="{k.X}",
        edit={"k.py": "X = 2\n"},
    ),
    "a data file": _in_one("def test_b(): assert open('t.txt').read() == '1'\n", t_txt="1", edit={"t.txt": "2"}),
    "a file that git ignores": _in_one(
        "def test_b(): assert open('t.log').read() == '1'\n", t_log="1", _gitignore="*.log\n", edit={"t.log": "2"}
    ),
    "a module that git ignores": _in_one(
        "import made\ndef test_b(): assert made.f() == 1\n",
        made_py="def f(): return 1\n",
        _gitignore="made.py\n",
        edit={"made.py": "def f(): return 2\n"},
    ),
    "a new module": _in_one(
        "try:\n    import fast\nexcept ImportError:\n    fast = None\ndef test_b(): assert fast is None\n", edit={"fast.py": ""}
    ),
    "a new conftest": _in_one("def test_b(): assert not hasattr(lib, 'X')\n", edit={"conftest.py": "import lib\nlib.X = 1\n"}),
    "a helper in the file of tests": _in_one(
        "def help(): return 1\ndef test_b(): assert help() == 1\n",
        edit={"test_a.py": "import lib\ndef help(): return 2\ndef test_b(): assert help() == 1\n"},
    ),
    "a class of tests that a file of the same name takes over": Trap(
        {
            "a/__init__.py": "",
            "b/__init__.py": "",
            "a/test_a.py": "class TestA:\n    def test_one(self): assert 1 == 1\n",
            "b/test_a.py": "from a.test_a import TestA\n",
        },
        "a/test_a.py::TestA::test_one b/test_a.py::TestA::test_one",
        {"a/test_a.py": "class TestA:\n    def test_one(self): assert 1 == 2\n"},
    ),
    "a test that another file calls": _in_two(
        "def test_a(): return None\n",
        "import test_a\ndef test_b(): assert test_a.test_a() is None\n",
        edit={"test_a.py": "import lib\ndef test_a():\n    assert lib\n    return 1\n"},
    ),
    # what a process has but one of, and what lies in objects of the standard library
    "a precision of decimals": _in_two(
        "import decimal\ndef test_a(): decimal.getcontext().prec = lib.value()\n",
        "import decimal\ndef test_b(): assert decimal.getcontext().prec == 1\n",
    ),
    "a level of logging": _in_two(
        "import logging\ndef test_a(): logging.getLogger().setLevel(lib.value())\n",
        "import logging\ndef test_b(): assert logging.getLogger().level == 1\n",
    ),
    "a level of a logger that nobody holds": _in_two(
        "import logging\ndef test_a(): logging.getLogger('t').setLevel(lib.value())\n",
        "import logging\ndef test_b(): assert logging.getLogger('t').level == 1\n",
    ),
    "a context variable": _in_two(
        "import store\ndef test_a(): store.V.set(lib.value())\n",
        "import store\ndef test_b(): assert store.V.get() == 1\n",
        store_py="import contextvars\nV = contextvars.ContextVar('V', default=0)\n",
    ),
    "a function of a package that was replaced": _in_two(
        "import json\ndef test_a(): json.left = [lib.value()]\n",
        "import json\ndef test_b(): assert json.left == [1]\n",
    ),
    "an iterator": _in_two(
        "import store\ndef test_a(): [next(store.N) for _ in range(lib.value())]\n",
        "import store\ndef test_b(): assert next(store.N) == 1\n",
        store_py="import itertools\nN = itertools.count()\n",
    ),
    "a buffer": _in_two(
        "import store\ndef test_a(): store.B.write(str(lib.value()))\n",
        "import store\ndef test_b(): assert store.B.getvalue() == '1'\n",
        store_py="import io\nB = io.StringIO()\n",
    ),
    "bytes": _in_two(
        "import store\ndef test_a(): store.B.append(lib.value())\n",
        "import store\ndef test_b(): assert store.B == b'\\x01'\n",
        store_py="B = bytearray()\n",
    ),
    "a namespace": _in_two(
        "import store\ndef test_a(): store.S.x = lib.value()\n",
        "import store\ndef test_b(): assert store.S.x == 1\n",
        store_py="import types\nS = types.SimpleNamespace(x=0)\n",
    ),
    "a queue": _in_two(
        "import store\ndef test_a(): store.Q.put(lib.value())\n",
        "import store\ndef test_b(): assert store.Q.get() == 1\n",
        store_py="import queue\nQ = queue.Queue()\n",
    ),
    "a mock": _in_two(
        "import store\ndef test_a(): store.M(lib.value())\n",
        "import store\ndef test_b(): store.M.assert_called_with(1)\n",
        store_py="from unittest.mock import Mock\nM = Mock()\n",
    ),
    "a dict of one's own": _in_two(
        "import store\ndef test_a(): store.D['x'] = lib.value()\n",
        "import store\ndef test_b(): assert store.D['x'] == 1\n",
        store_py="class Registry(dict):\n    def __init__(self): self.y = 0\nD = Registry()\n",
    ),
    "a database in a file": _in_two(
        "import sqlite3\ndef test_a():\n    with sqlite3.connect('../left.db') as db:\n"
        "        db.execute('drop table if exists t')\n        db.execute('create table t as select ? as x', [lib.value()])\n",
        "import sqlite3\ndef test_b(): assert sqlite3.connect('../left.db').execute('select x from t').fetchone() == (1,)\n",
    ),
    # what ran once for several tests
    "a function that fills itself": _in_two(
        ASKS,
        ASKS_TOO,
        BOTH,
        edit={"keep.py": "X = None\ndef get():\n    global X\n    if X is None:\n        X = 2\n    return X\n"},
        keep_py="X = None\ndef get():\n    global X\n    if X is None:\n        X = 1\n    return X\n",
    ),
    "a source that was read by an import in a test": _in_two(
        "def test_a():\n    import late\n    assert 'return 1' in late.TEXT\n",
        "def test_b():\n    import late\n    assert 'return 1' in late.TEXT\n",
        BOTH,
        late_py="TEXT = open('lib.py').read()\n",
    ),
    "a module that another file imports": _in_two(
        "import k\ndef test_a(): assert k\n",
        "import sys\ndef test_b(): assert sys.modules['k'].X == 1\n",
        k_py="X = 1\n",
        edit={"k.py": "X = 2\n"},
    ),
    "a loader of one's own": _in_two(
        "import k\ndef test_a(): assert k.load().f() == 1\n",
        "import k\ndef test_b(): assert k.load().f() == 1\n",
        BOTH,
        k_py="import sys, types\ndef load():\n    if 'own' not in sys.modules:\n"
        "        m = sys.modules['own'] = types.ModuleType('own')\n"
        "        exec(open('pkg/sub.py').read(), m.__dict__)\n    return sys.modules['own']\n",
        edit={"pkg/sub.py": "X = 1\n\n\ndef f():\n    return 2\n"},
    ),
    "a path with dots": _in_one("def test_b(): assert 'return 1' in open('pkg/../lib.py').read()\n"),
    "a module beside the tree": _in_one(
        "import sys\nsys.path.append('..')\nimport beside\ndef test_b(): assert beside.f() == 1\n",
        edit={"../beside.py": "def f(): return 2\n"},
    ),
}
BESIDE = {"pkg/__init__.py": "", "pkg/sub.py": "X = 1\n\n\ndef f():\n    return 1\n", "../beside.py": "def f(): return 1\n"}
"""Files that all traps have."""
