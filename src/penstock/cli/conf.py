"""``--conf NAME=VALUE``: settings of Spark, as commands that start it take them."""

from __future__ import annotations

import re

import click

from penstock.cli.refusal import Refusal

# What Spark itself hides where it shows settings (spark.redaction.regex).
_SECRET = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
MASTER = "spark.master"


class SparkSetting(click.ParamType[tuple[str, str]]):
    """A name of Spark's, and its value."""

    name = "setting"

    def convert(
        self,
        value: str | tuple[str, str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, given = value.partition("=")
        name = name.strip()
        if not equals or not name.startswith("spark.") or name == MASTER:
            self.fail(_wanted(name), param, ctx)
        if _SECRET.search(name):
            raise Refusal(
                f"--conf {name}: command lines can be read by all users",
                "put it into spark-defaults.conf, in the directory $SPARK_CONF_DIR",
            )
        return name, given


def _wanted(name: str) -> str:
    if name == MASTER:
        return "the master is given by --master"
    return f"{name!r} is no setting of Spark: spark.NAME=VALUE"


conf_option = click.option(
    "--conf",
    type=SparkSetting(),
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of Spark, over what is set for it; repeat for more.",
)
