"""What hostile answers try against the trip-wire, to open the secret behind it; and in the place of a result."""

from __future__ import annotations

OPENS = "    return open(given['secret']).read()"
POLICY = {
    "the tables in main": "import __main__ as m\nm.FORBIDDEN = ()\nm.tripwire = m.run = None",
    "the tables in any module": "import sys\nfor m in list(sys.modules.values()):\n    if 'FORBIDDEN' in vars(m): m.FORBIDDEN = ()",
    "no modules": "import sys\nsys.modules.clear()",
    "the globals of all frames": "import sys\nf = sys._getframe()\nwhile f := f.f_back: f.f_globals.clear()",
    "the built-ins of all frames": "import sys\nf = sys._getframe()\nwhile f := f.f_back: f.f_builtins.update(type=lambda x: int, str=int)",
    "the locals of all frames": "import sys\nf = sys._getframe()\nwhile f := f.f_back: f.f_locals.clear()",
    "the code of functions on the stack": "import sys\nf = sys._getframe(1)\nf.f_globals['tripwire'].__code__ = (lambda *a: None).__code__",
    "closures of functions on the stack": "import sys\nsys._getframe(1).f_locals['report'].__closure__[0].cell_contents = print",
    "the built-in functions": "import builtins\nbuiltins.type = lambda x: int\nbuiltins.str = int",
    "the path functions": "import os, posixpath\nos.fsdecode = posixpath.realpath = os.path.join = lambda *p: '/usr/lib/x'",
    "another hook that raises": "import sys\ntry: sys.addaudithook(print)\nexcept RuntimeError: pass",
    "a hook of the collector": "import gc, sys\ngc.callbacks.append(lambda *a: sys._getframe(1).f_globals.clear())\ngc.set_threshold(1)",
    "objects of the collector": "import gc\nfor one in gc.get_objects():\n    if getattr(one, '__name__', '') == 'hook': one.__code__ = (lambda *a: None).__code__",
    "referrers": "import gc\ngc.get_referrers(print)",
    "a tracer": "import sys\nsys.settrace(lambda *a: None)",
    "a profiler": "import sys\nsys.setprofile(lambda *a: None)",
    "code made by hand": "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes(2**10))\nf()",
    "a reloaded importer": "import importlib._bootstrap_external as b\nb._path_stat = None",
    "a text with its own methods": "class S(str):\n    startswith = lambda *a: True\n    __add__ = lambda *a: 'mine.py'\ngiven['secret'] = S(given['secret'])",
    "bytes": "given['secret'] = given['secret'].encode()",
    "a path that says another each time": (
        "class P:\n    many = 0\n    def __fspath__(self):\n        P.many += 1\n"
        "        return 'mine.py' if P.many == 1 else given['secret']\ngiven = dict(given, secret=P())"
    ),
    "a signal's handler": "import signal\nsignal.signal(signal.SIGIO, lambda n, f: f.f_globals.clear())",
    "a finalizer": "class D:\n    def __del__(self): open(given['secret'])\nD()",
    "a subinterpreter": "import _xxsubinterpreters as s\ns.run_string(s.create(), 'open(\"/etc/passwd\")')",
    "what runs at the end": "import atexit\natexit.register(open, given['secret'])\nraise SystemExit",
    "a handler of what cannot be raised": "import sys\nsys.unraisablehook = sys.excepthook = lambda *a: None",
    "a relative way out": "given['secret'] = './' + '../' * 20 + given['secret']",
    "a path with two slashes": "given['secret'] = '/' + given['secret']",
}
"""What is tried against the trip-wire before the secret is opened."""

FORGED = {
    "leaves": "import os\nos._exit(0)",
    "raises SystemExit": "raise SystemExit(0)",
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "prints at its end": "import atexit, sys\natexit.register(print, '{\"value\": 1}')\nsys.exit(0)",
    "prints a result": "print('{\"value\": 1}')\nraise SystemExit",
    "writes a result where it prints": "import os\nos.write(1, b'{\"value\": 1}')\nos._exit(0)",
    "says that it started": "import os\nos.write(4, b'started')",
    "closes all files": "import os\nos.closerange(0, 100)\nraise SystemExit",
    "aborts": "import os\nos.abort()",
    "writes half a result": "import os\nos.write(3, b'{\"value\": 1')\nos._exit(0)",
    "writes no number": "import os\nos.write(3, b'{\"value\": NaN')\nos._exit(0)",
    "writes what is too deep": "import os\nos.write(3, b'[' * 100000)\nos._exit(0)",
    "returns what has no name": "def answer(value): return {value: answer}",
    "returns a type": "def answer(value): return float",
    "returns itself": "def answer(value):\n    x = []\n    x.append(x)\n    return x",
    "raises escape sequences": "def answer(value): raise Exception('\\ud800' + '\\x1b]52;c;\\a' * 1000)",
    "raises what cannot be said": "class E(Exception):\n    def __str__(self): raise E\nraise E",
    "takes the writer away": "import json\njson.dumps = None\ndef answer(value): return 1",
}
"""What is tried to look like a result, or to make none look like our failure: code of the module that is asked for an answer."""

SLEEPS = {
    "naps": "import time\nwhile True: time.sleep(0.01)",
    "reads from nobody": "import os\nos.read(os.pipe()[0], 1)",
    "waits for nothing": "import select\nselect.select([], [], [])",
    "ignores every signal": (
        "import signal, time\nfor n in range(1, 30):\n    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\ntime.sleep(9)"
    ),
}
"""Code that takes time and does nothing with it."""
