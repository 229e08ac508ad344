"""A Spark session in which everything works that pip has installed.

What a plain session gets wrong, each found by measuring:

- Workers are started with ``python3`` of the path, not with this Python, and then do
  not find the data source.
- Python workers import Spark from an archive without byte code, which takes a second
  for each. A home of Spark without that archive lets them import the installed package.
- The checkpoint manager of streaming queries starts a dozen processes for every batch.
- Stopping a query inside ``foreachBatch`` overflows the stack of its thread.
- Filters are pushed to Python sources only where that is allowed.
- Rows come from Python workers over TCP in pieces of 64 KiB: over a socket of the file
  system and in pieces of 1 MiB that takes a third less CPU.
- A worker collects garbage after each task, over all that it has imported: most of the
  time of a small task. See daemon.py.
- An aggregation on one machine is cut into 200 tasks.
- Executors of a cluster on this machine look for the driver by the name of the host,
  and do not know the ``PYTHONPATH`` of this process.

Whatever is given by name wins over all of this; so does an environment variable that is
set.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.errors import InvalidOption, SparkNotStarted
from penstock.spark import archive, cache, register
from penstock.spark.java import java_home, shimmed

LOOPBACK = "127.0.0.1"
NAME = "penstock"
# Regular expressions over the text of Python errors recurse deeply.
STACK = "-Xss4m"
# Quick to start rather than quick in the end: one compiler, and one collector.
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager"
)
LOGGING = "-Dlog4j2.configurationFile={}".format(
    Path(__file__).with_name("log4j2.properties").as_uri()
)
_LOCAL = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,\s*\d+)?\])?")
_SIMULATED = re.compile(r"local-cluster\[.*\]")
_CLUSTER_HERE = re.compile(r"spark://(?:127\.0\.0\.1|localhost|\[::1\]):\d+")
PYTHON = "spark.pyspark.python"
PYTHON_PATH = "spark.executorEnv.PYTHONPATH"
# Of Spark's home, all but the archives of its Python side.
_HOME = ("bin", "data", "jars", "sbin")

ConfValue = str | int | float | bool


def session(master: str = "local[*]", **conf: ConfValue) -> SparkSession:
    """A session that knows the format ``penstock``; the one that runs, if one does.

    ``conf``: settings of Spark, ``**{"spark.ui.enabled": True}`` or, with ``_`` for
    dots, ``spark_ui_enabled=True``. Raises MissingJava, InvalidOption,
    SparkNotStarted.
    """
    return opened(master, conf, short=False)


def opened(master: str, conf: Mapping[str, ConfValue], *, short: bool) -> SparkSession:
    """The same; ``short``: for little work, and without what Java says of modules."""
    settings = named(conf)
    builder = SparkSession.Builder()
    if SparkSession.getActiveSession() is None:
        os.environ.update(environment(master, quiet=short))
        if PYTHON in settings:  # Spark heeds it in programs that spark-submit starts
            os.environ["PYSPARK_PYTHON"] = settings[PYTHON]
        builder = builder.master(master).appName(NAME)
        settings = {**defaults(master, short=short), **settings}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _aside() if short else nullcontext():
            spark = builder.getOrCreate()
    except Py4JJavaError as error:
        raise SparkNotStarted(master, _reason(str(error))) from error
    register(spark)
    return spark


@contextmanager
def _aside() -> Iterator[None]:
    """What is started here says what it says to a file, which is shown if it fails.

    Java, and the processes of Python that it starts, inherit standard error for good.
    Some of them end with a traceback because the process that asked them has ended.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(kept, said.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _reason(text: str) -> str:
    """Why Spark did not start, by what Java says behind py4j's own line."""
    if "stopped SparkContext" in text:
        return "it does not answer"
    lines = text.splitlines()
    return (lines[1] if len(lines) > 1 else text).strip(" :")


def defaults(master: str, *, short: bool = False) -> dict[str, str]:
    """The settings of a session on this master."""
    conf = {
        "spark.buffer.size": str(1 << 20),
        "spark.driver.extraJavaOptions": java_options(short=short),
        "spark.python.daemon.module": "penstock.spark.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if find_spec("pandas") is None:  # functions in Python would warn of it, each time
        conf["spark.sql.execution.pythonUDF.arrow.enabled"] = "false"
    if is_here(master):
        conf["spark.driver.bindAddress"] = LOOPBACK
        conf["spark.driver.host"] = LOOPBACK
    cores, path = cores_of(master), os.environ.get("PYTHONPATH")
    if cores is not None:
        conf["spark.sql.shuffle.partitions"] = str(cores)
    elif path:  # what is importable here is, where there are the same directories
        conf[PYTHON_PATH] = os.pathsep.join(
            map(os.path.abspath, path.split(os.pathsep))
        )
    return conf


def java_options(*, short: bool) -> str:
    """What the Java of a session is told."""
    options = [STACK, LOGGING]
    if short:
        options.append(LIGHT)
    with suppress(OSError):
        options.append(archive.java_options(*homes()))
    return " ".join(filter(None, options))


def named(conf: Mapping[str, ConfValue]) -> dict[str, str]:
    """Settings by the names that Spark has for them, as the text that it wants.

    Raises InvalidOption for what Spark would ignore.
    """
    for name, value in conf.items():
        if not name.startswith(("spark.", "spark_")):
            raise InvalidOption(name, value, "a setting of Spark: spark_… or spark.…")
    return {
        name if "." in name else name.replace("_", "."): (
            str(value).lower() if isinstance(value, bool) else str(value)
        )
        for name, value in conf.items()
    }


def cores_of(master: str) -> int | None:
    """How many cores a local master has; None if it is another kind of master."""
    found = _LOCAL.fullmatch(master.strip())
    if found is None:
        return None
    cores = found["cores"] or "1"
    return len(os.sched_getaffinity(0)) if cores == "*" else int(cores)


def is_here(master: str) -> bool:
    """Whether a master and all that it has are on this machine, by its address."""
    name = master.strip()
    return any(one.fullmatch(name) for one in (_LOCAL, _SIMULATED, _CLUSTER_HERE))


def environment(master: str, *, quiet: bool = False) -> dict[str, str]:
    """The variables that Spark wants before it starts, but for those that are set."""
    home = java_home()
    found = {"PYSPARK_PYTHON": sys.executable, "SPARK_LAUNCHER_OPTS": LIGHT}
    with suppress(OSError):  # without a cache it is louder, and slower, and works
        found["SPARK_HOME"] = str(_home_for(master))
        home = shimmed(home, cache.directory()) if quiet else home
    if is_here(master):
        found["SPARK_LOCAL_IP"] = LOOPBACK
    unset = {name: value for name, value in found.items() if name not in os.environ}
    return {**unset, "JAVA_HOME": str(home)}


def homes() -> tuple[Path, Path]:
    """Those of Java and of Spark that a session here has."""
    given = os.environ.get("SPARK_HOME")
    return java_home(), spark_home() if given is None else Path(given)


def spark_home() -> Path:
    """The installed Spark, without the archives that its workers would import from."""
    installed = Path(pyspark.__file__).resolve().parent
    of = f"{pyspark.__version__} {installed}"
    return cache.made(cache.directory(), "spark", of, _fill)


def _home_for(master: str) -> Path:
    given = os.environ.get("SPARK_HOME")
    if given is not None:
        return Path(given)
    return passing_home() if _SIMULATED.fullmatch(master.strip()) else spark_home()


def passing_home() -> Path:
    """The same for this process alone, where executors may leave their logs.

    Those of ``local-cluster`` do, and nothing says where else.
    """
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None
    home = Path(tempfile.mkdtemp(prefix="penstock-spark-", dir=scratch))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    _fill(home)
    return home


def _fill(home: Path) -> None:
    installed = Path(pyspark.__file__).resolve().parent
    for name in _HOME:
        if (installed / name).is_dir():
            (home / name).symlink_to(installed / name)
