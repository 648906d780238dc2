"""What hostile answers try, as bodies of a function. Each ends in an exception where it is refused, or returns False.

They are given `secret` (a file of the user), `installed` (a file of a package), `library`, `folder` (the sandbox's own),
`victim`, `parent` and `launcher` (processes), `port` (one that listens) and `name` (an abstract socket that does).
"""

from __future__ import annotations

PRELUDE = "import errno, fcntl, mmap, os, resource, select, signal, socket, sys, time"

FILES = """
open(secret).read()
open(secret, 'rb').read()
open(secret, 'w')
open(secret, 'a')
open(secret, 'r+')
os.open(secret, os.O_RDONLY)
os.open(secret, os.O_RDONLY | os.O_TRUNC)
os.open(secret, os.O_RDWR | os.O_CREAT)
os.truncate(secret, 0)
os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)
os.truncate(os.__file__, 0)
open(os.__file__, 'r+')
open(os.__file__, 'a')
open(installed).read()
open(library + '/ctypes/__init__.py').read()
open('new', 'w')
open('mine.py', 'w')
os.open('new', os.O_CREAT | os.O_WRONLY)
os.open('.', os.O_TMPFILE | os.O_RDWR)
os.open('/tmp', os.O_TMPFILE | os.O_RDWR)
open('/tmp/new', 'w')
open('/dev/shm/new', 'w')
os.mkdir('new')
os.mkfifo('new')
os.mknod('new')
os.symlink(secret, 'new')
os.link('mine.py', 'new')
os.link(secret, 'new')
os.rename('mine.py', 'yours.py')
os.replace(secret, 'new')
os.remove('mine.py')
os.remove(secret)
os.rmdir(folder)
os.chmod('mine.py', 0o777)
os.chmod(secret, 0o666)
os.fchmod(os.open('mine.py', os.O_RDONLY), 0o777)
os.chown(secret, 1, 1)
os.utime('mine.py', (0, 0))
os.utime(secret)
os.setxattr('mine.py', 'user.a', b'1')
os.getxattr(secret, 'user.a')
os.listxattr(secret)
os.listdir('/')
os.listdir('..')
os.listdir(os.path.dirname(secret))
os.listdir(os.open('/', os.O_PATH))
os.listdir('/tmp')
os.listdir('/proc')
os.listdir('/proc/self/fd')
os.listdir('/dev')
next(os.scandir('/root'))
os.chdir('/')
os.fchdir(os.open('/', os.O_PATH))
os.chroot('.')
open('../' * 20 + secret).read()
open('/proc/self/root' + secret).read()
open('/proc/self/cwd/' + '../' * 20 + secret).read()
open(os.open(secret, os.O_PATH)).read()
os.open(os.path.basename(secret), os.O_RDONLY, dir_fd=os.open(os.path.dirname(secret), os.O_PATH))
open('/etc/passwd').read()
open('/etc/shadow').read()
open('/etc/hostname').read()
open('/proc/self/environ').read()
open('/proc/self/maps').read()
open('/proc/self/mem', 'r+b')
open('/proc/self/status').read()
open('/proc/self/oom_score_adj', 'w')
open('/proc/self/attr/current', 'w')
open('/proc/self/ns/net').read()
open(f'/proc/{parent}/environ').read()
open(f'/proc/{parent}/mem', 'rb')
open(f'/proc/{parent}/cmdline').read()
open(f'/proc/{launcher}/mem', 'r+b')
open(f'/proc/{launcher}/fd/0')
open('/proc/sys/kernel/core_pattern', 'w')
open('/proc/sysrq-trigger', 'w')
open('/sys/kernel/uevent_helper', 'w')
open('/dev/mem', 'rb')
open('/dev/kmsg')
open('/dev/tty')
open('/dev/ptmx', 'r+b')
open('/dev/fuse', 'r+b')
open('/dev/kvm', 'r+b')
open('/dev/urandom', 'rb')
open('/dev/null', 'w')
open('/var/run/docker.sock')
os.ftruncate(0, 0)
os.ftruncate(3, 0)
os.posix_fallocate(3, 0, 2**19)
os.sendfile(3, 0, 0, 10)
os.copy_file_range(0, 3, 10)
os.splice(0, 3, 10)
os.fsync(3)
fcntl.flock(3, fcntl.LOCK_EX)
fcntl.lockf(3, fcntl.LOCK_EX)
mmap.mmap(os.open(os.__file__, os.O_RDONLY), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
import ssl; ssl.SSLContext().load_verify_locations(secret)
import readline; readline.read_history_file(secret)
import readline; readline.write_history_file('new')
import _dbm; _dbm.open('new', 'c')
import _gdbm; _gdbm.open('new', 'c')
import sqlite3; sqlite3.connect('new').execute('create table t (x)')
import sqlite3; sqlite3.connect(secret).execute('select 1 from sqlite_master')
import runpy; runpy.run_path(secret)
import io; io.open_code(secret)
import zipimport; zipimport.zipimporter(secret)
import tempfile; tempfile.tempdir = '/tmp'; tempfile.TemporaryFile()
import importlib.machinery as m; m.SourceFileLoader('x', secret).get_data(secret)
import shutil; shutil.copy(secret, 'new')
import shutil; shutil.rmtree(os.path.dirname(secret))
import dbm.dumb; dbm.dumb.open('new', 'c')
import logging; logging.FileHandler('new')
import faulthandler; faulthandler.enable(open('new', 'w'))
import tracemalloc, pickle; pickle.dump(1, open('new', 'wb'))
"""

SIGNALS = """
os.kill(victim, 9)
os.kill(victim, 0)
os.kill(victim, signal.SIGSTOP)
os.kill(parent, 9)
os.kill(parent, signal.SIGSTOP)
os.kill(launcher, 9)
os.kill(os.getpid(), 0)
os.kill(0, 0)
os.kill(-1, 0)
os.kill(1, 0)
os.killpg(victim, 9)
os.killpg(0, 9)
os.pidfd_open(victim)
os.pidfd_open(parent)
signal.pidfd_send_signal(3, 9)
signal.raise_signal(signal.SIGTERM)
signal.setitimer(signal.ITIMER_REAL, 0.001)
signal.sigtimedwait([signal.SIGUSR1], 0)
import _thread; signal.pthread_kill(_thread.get_ident(), 0)
fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, victim)
fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, -victim)
fcntl.fcntl(os.pipe()[0], 10, 9)
fcntl.fcntl(os.pipe()[0], 15, bytes(8))
fcntl.fcntl(os.pipe()[0], fcntl.F_SETFL, os.O_ASYNC)
fcntl.fcntl(os.open('mine.py', os.O_RDONLY), 1024, 0)
fcntl.fcntl(os.open('.', os.O_RDONLY), 1026, 1)
fcntl.fcntl(os.pipe()[0], 1031, 2**20)
fcntl.fcntl(os.pipe()[0], 1033, 1)
fcntl.ioctl(os.pipe()[0], 0x5452, bytes(4))
fcntl.ioctl(os.pipe()[0], 0x8901, bytes(4))
fcntl.ioctl(os.pipe()[0], 0x8902, bytes(4))
fcntl.ioctl(0, 0x5412, b'x')
fcntl.ioctl(0, 0x540E, 0)
os.tcsetpgrp(0, victim)
os.set_blocking(os.pipe()[0], False)
"""

PROCESSES = """
os.fork()
os.forkpty()
os.execv(sys.executable, [sys.executable, '-c', ''])
os.execv('/bin/true', ['true'])
os.execve(0, ['x'], {})
os.execve(512, ['x'], {})
os.dup2(0, 512)
fcntl.fcntl(0, fcntl.F_DUPFD, 512)
fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 511)
os.posix_spawn('/bin/true', ['true'], {})
os.posix_spawnp('true', ['true'], {})
return os.system('true') == 0
import subprocess; subprocess.run(['true'])
import subprocess; subprocess.Popen('true', shell=True)
import pty; pty.fork()
import pty; pty.openpty()
os.openpty()
import _thread; _thread.start_new_thread(print, ())
import threading; threading.Thread(target=print).start()
import multiprocessing; multiprocessing.get_context('fork').Process().start()
import concurrent.futures as f; f.ThreadPoolExecutor().submit(print).result(1)
os.setsid()
os.setpgid(0, 0)
os.getpgid(victim)
os.getsid(victim)
os.setuid(0)
os.setgid(0)
os.seteuid(0)
os.setresuid(0, 0, 0)
os.setgroups([0])
os.umask(0o777)
os.waitpid(victim, os.WNOHANG)
os.waitid(os.P_PID, victim, os.WEXITED | os.WNOHANG)
mmap.mmap(-1, 4096, prot=7)
mmap.mmap(-1, 4096, prot=5)
"""

PRIORITIES = """
os.nice(5)
os.nice(-5)
os.setpriority(os.PRIO_PROCESS, parent, 19)
os.setpriority(os.PRIO_USER, 0, 19)
os.getpriority(os.PRIO_PROCESS, parent)
os.sched_setaffinity(parent, {0})
os.sched_setaffinity(0, {0})
os.sched_getaffinity(parent)
os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0))
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
os.sched_setparam(parent, os.sched_param(0))
os.sched_rr_get_interval(parent)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
resource.prlimit(parent, resource.RLIMIT_NOFILE, (5, 5))
resource.prlimit(0, resource.RLIMIT_NOFILE, (1024, 1024))
time.clock_settime(time.CLOCK_REALTIME, 0)
socket.sethostname('x')
os.posix_fadvise(0, 0, 0, os.POSIX_FADV_DONTNEED)
"""

CHANNELS = """
socket.socket()
socket.socket(socket.AF_INET6)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
socket.socket(socket.AF_UNIX).connect(chr(0) + name)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
socket.socket(socket.AF_VSOCK)
socket.socket(socket.AF_ALG)
socket.socketpair()
socket.create_connection(('127.0.0.1', port), 1)
socket.create_server(('127.0.0.1', 0))
socket.getaddrinfo('localhost', port)
socket.fromfd(0, socket.AF_UNIX, socket.SOCK_STREAM).send(b'')
socket.if_nameindex()
import urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{port}/')
import http.client; http.client.HTTPConnection('127.0.0.1', port).request('GET', '/')
import asyncio; asyncio.run(asyncio.sleep(0))
os.memfd_create('x')
os.eventfd(0)
select.epoll()
import _posixshmem; _posixshmem.shm_open('/x', os.O_CREAT | os.O_RDWR, mode=0o600)
import multiprocessing.shared_memory as s; s.SharedMemory(create=True, size=10)
import _multiprocessing; _multiprocessing.SemLock(0, 1, 1, '/x', False)
import multiprocessing; multiprocessing.Lock()
"""

MACHINE_CODE = """
import ctypes
import _ctypes
import ctypes.util
import _testcapi
import _testinternalcapi
import _xxsubinterpreters
import _imp, importlib.machinery as m; _imp.create_dynamic(m.ModuleSpec('_ctypes', None, origin=ctypes_module))
import importlib.machinery as m; m.ExtensionFileLoader('_ctypes', ctypes_module).create_module(m.ModuleSpec('_ctypes', None, origin=ctypes_module))
import importlib.util as u; u.module_from_spec(u.spec_from_file_location('other', ctypes_module))
return any('CData' in one.__name__ or 'FuncPtr' in one.__name__ for one in object.__subclasses__())
return any('ctypes' in name for name in sys.modules)
return any('ctypes' in getattr(one, '__module__', '') for one in __import__('gc').get_objects() if isinstance(one, type))
"""

GROUPS = {
    "files": FILES,
    "signals": SIGNALS,
    "processes": PROCESSES,
    "priorities": PRIORITIES,
    "channels": CHANNELS,
    "machine code": MACHINE_CODE,
}


def attacks(group: str) -> list[str]:
    return GROUPS[group].strip().splitlines()


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
