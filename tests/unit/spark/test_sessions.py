from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.errors import InvalidOption, SparkNotStarted
from penstock.spark import archive, session, sessions
from penstock.spark.java import java_home
from penstock.spark.sessions import (
    PYTHON_PATH,
    cores_of,
    defaults,
    environment,
    named,
    spark_home,
)


def test_what_spark_would_ignore_is_an_error() -> None:
    with pytest.raises(InvalidOption, match="option quiet is True: must be a setting"):
        session(quiet=True)


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[2,3]", 2),
        ("local[*]", len(os.sched_getaffinity(0))),
        ("local[*, 4]", len(os.sched_getaffinity(0))),
        ("spark://host:7077", None),
        ("local-cluster[2,1,1024]", None),
        ("yarn", None),
    ],
)
def test_a_local_master_says_its_cores(master: str, cores: int | None) -> None:
    assert cores_of(master) == cores


def test_a_local_session_stays_on_this_machine() -> None:
    local, cluster = defaults("local[2]"), defaults("spark://host:7077")

    assert local["spark.driver.host"] == "127.0.0.1"
    assert local["spark.sql.shuffle.partitions"] == "2"
    assert not {"spark.driver.host", "spark.sql.shuffle.partitions"} & set(cluster)
    assert cluster["spark.sql.python.filterPushdown.enabled"] == "true"


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[2]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://host:7077", False),
        ("spark://127.0.0.1:7077,host:7077", False),
        ("yarn", False),
    ],
)
def test_whether_executors_find_the_driver_on_the_loopback(
    master: str, monkeypatch: pytest.MonkeyPatch, *, here: bool
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)

    assert ("spark.driver.host" in defaults(master)) == here
    assert ("SPARK_LOCAL_IP" in environment(master)) == here


def test_executors_have_the_path_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"src{os.pathsep}{tmp_path}")

    found = defaults("spark://host:7077")[PYTHON_PATH]

    assert found == os.pathsep.join([str(Path("src").absolute()), str(tmp_path)])
    assert PYTHON_PATH not in defaults("local[2]")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "An error.\n: java.lang.X: Cannot call a stopped SparkContext.\nThis",
            "it does not answer",
        ),
        (
            "An error.\n: java.net.BindException: taken\nat",
            "java.net.BindException: taken",
        ),
        ("short", "short"),
    ],
)
def test_a_spark_that_does_not_start_says_why(
    said: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Said(Py4JJavaError):
        def __init__(self) -> None:
            pass

        def __str__(self) -> str:
            return said

    def start(_: object) -> None:
        raise Said

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: object())
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", start)

    with pytest.raises(SparkNotStarted) as caught:
        session("spark://h:7077")

    assert str(caught.value) == f"no Spark at spark://h:7077: {reason}"


def test_settings_may_be_named_as_python_names_things() -> None:
    given: dict[str, str | int | bool] = {
        "spark_ui_enabled": True,
        "spark.some_thing": 1,
        "spark_x": "y",
    }

    assert named(given) == {
        "spark.ui.enabled": "true",
        "spark.some_thing": "1",
        "spark.x": "y",
    }


def test_workers_are_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    local, cluster = environment("local"), environment("spark://host:7077")

    assert local["PYSPARK_PYTHON"] == sys.executable
    assert local["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "SPARK_LOCAL_IP" not in cluster
    assert Path(local["JAVA_HOME"], "bin", "java").exists()


def test_what_is_set_stays_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "mine")
    monkeypatch.setenv("SPARK_HOME", "mine, too")

    assert not {"PYSPARK_PYTHON", "SPARK_HOME"} & set(environment("local"))


def test_without_a_cache_it_works_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    found = environment("local", quiet=True)

    assert "SPARK_HOME" not in found
    assert found["JAVA_HOME"] == str(java_home())


def test_a_cluster_inside_the_driver_leaves_nothing_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))

    homes = [
        Path(environment("local-cluster[2,1,1024]")["SPARK_HOME"]) for _ in range(2)
    ]

    assert {home.parent for home in homes} == {tmp_path}
    assert homes[0] != homes[1]
    assert all((home / "bin" / "spark-class").exists() for home in homes)


def test_the_home_of_spark_has_no_archive_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    home = spark_home()

    assert not (home / "python").exists()
    assert (home / "bin" / "spark-submit").exists()
    installed = Path(pyspark.__file__).resolve().parent
    assert (home / "jars").resolve() == installed / "jars"


def test_only_short_work_does_without_the_better_compiler() -> None:
    usual, short = defaults("local"), defaults("local", short=True)

    options = "spark.driver.extraJavaOptions"
    assert sessions.LIGHT not in usual[options]
    assert sessions.LIGHT in short[options]


@pytest.mark.parametrize("short", [True, False])
def test_an_archive_of_classes_is_used_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, short: bool
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    without = sessions.java_options(short=short)
    kept = archive.place(*sessions.homes())
    kept.mkdir()
    (kept / "spark.jsa").write_bytes(b"classes")
    (kept / "sizes").write_text("spark.jsa 7\n")

    assert "SharedArchiveFile" not in without
    assert f"SharedArchiveFile={kept}" in sessions.java_options(short=short)


def test_the_archive_is_that_of_the_true_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A session of another test may have left both.
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = archive.place(*sessions.homes())

    monkeypatch.setenv("JAVA_HOME", environment("local", quiet=True)["JAVA_HOME"])

    assert archive.place(*sessions.homes()) == before


def test_the_function_is_a_name_of_the_package() -> None:
    assert session is sessions.session


def test_what_processes_of_a_short_session_say_is_kept_aside(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with sessions._aside():
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; input(); sys.exit('noise')"],
            stdin=subprocess.PIPE,
        )
    process.communicate(b"\n")  # it ends long after the session has begun

    os.write(2, b"ours")
    assert capfd.readouterr().err == "ours"


def test_what_they_say_is_shown_if_there_is_no_session(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(OSError, match="no Java"), sessions._aside():
        os.write(2, b"why there is none")
        raise OSError("no Java")

    assert capfd.readouterr().err == "why there is none"
