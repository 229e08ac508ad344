from __future__ import annotations

import pytest
from pyspark.sql import types as spark

from penstock.errors import InvalidOption
from penstock.spark.ddl import parse

DECIMAL = spark.StructType([spark.StructField("a", spark.DecimalType(3, 2))])


def simple(text: str) -> str:
    return parse(text).simpleString()


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("user STRING", "struct<user:string>"),
        ("a int, b: Long ,c double", "struct<a:int,b:bigint,c:double>"),
        ("a TINYINT, b SMALLINT, c REAL", "struct<a:tinyint,b:smallint,c:float>"),
        ("at TIMESTAMP, on DATE", "struct<at:timestamp,on:date>"),
        ("tags ARRAY<STRING>", "struct<tags:array<string>>"),
        ("a STRUCT<b: INT, c ARRAY<INT>>", "struct<a:struct<b:int,c:array<int>>>"),
        ("a ARRAY<ARRAY<BOOLEAN>>", "struct<a:array<array<boolean>>>"),
        ("`odd ``name` STRING", "struct<odd `name:string>"),
        ("a INT COMMENT 'it''s', b INT", "struct<a:int,b:int>"),
    ],
)
def test_what_a_text_says(text: str, fields: str) -> None:
    assert simple(text) == fields


def test_not_null_is_kept() -> None:
    assert [one.nullable for one in parse("a INT NOT NULL, b INT").fields] == [
        False,
        True,
    ]


def test_what_spark_wrote_is_read() -> None:
    schema = parse("a INT, b ARRAY<DATE>")

    assert parse(schema.json()) == schema


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "fields such as"),
        ("a", "a type for a is missing"),
        ("a MAP<STRING, INT>", "a is MAP"),
        ("a DECIMAL(3, 2)", "a is DECIMAL"),
        ("a INT b INT", "',' is missing in front of 'b'"),
        ("a INT,", "a name is missing"),
        ("a INT, a INT", "different names"),
        ("a ARRAY<INT", "'>' is missing"),
        ("a ARRAY INT", "'<' is missing in front of 'INT'"),
        ("a STRUCT<b INT", "'>' is missing"),
        ("< INT", "'<' is no name"),
        ("a ; INT", "'; INT' is none"),
        ("a " + "ARRAY<" * 60 + "INT" + ">" * 60, "nested no deeper"),
        ('{"type": "map"}', "as Spark writes it"),
        (DECIMAL.json(), "a is decimal(3,2)"),
    ],
)
def test_what_is_no_schema(text: str, reason: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse(text)

    assert reason in str(caught.value)
    assert caught.value.name == "valueSchema"
