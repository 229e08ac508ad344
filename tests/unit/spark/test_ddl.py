from __future__ import annotations

import pytest
from pyspark.sql import types as spark

from penstock.errors import InvalidOption
from penstock.spark.ddl import parse

LONG = spark.LongType()
NUMBERED = spark.MapType(spark.IntegerType(), spark.StringType())
BINARY = spark.StructType([spark.StructField("a", spark.BinaryType())])
NUMBERS = spark.StructType([spark.StructField("a", NUMBERED)])

ALIKE = spark.StructType([spark.StructField(name, LONG) for name in "aA"])


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
        ("a MAP<STRING, INT>, b INT", "struct<a:map<string,int>,b:int>"),
        ("a map<string, array<date>>", "struct<a:map<string,array<date>>>"),
        ("a DECIMAL(3, 2), b DEC(5)", "struct<a:decimal(3,2),b:decimal(5,0)>"),
        ("a NUMERIC, b DECIMAL(38,38)", "struct<a:decimal(10,0),b:decimal(38,38)>"),
        ("`odd ``name` STRING", "struct<odd `name:string>"),
        ("a INT COMMENT 'it''s', b INT", "struct<a:int,b:int>"),
    ],
)
def test_what_a_text_says(text: str, fields: str) -> None:
    assert simple(text) == fields


STRICT = spark.StructType(
    [
        spark.StructField("a", spark.ArrayType(spark.LongType(), False), False),
        spark.StructField("s", spark.StructType([spark.StructField("n", LONG, False)])),
        spark.StructField("m", spark.MapType(spark.StringType(), LONG, False)),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        STRICT.json(),
        "a ARRAY<BIGINT> NOT NULL, s STRUCT<n: BIGINT NOT NULL>, m MAP<STRING, BIGINT>",
    ],
)
def test_not_null_is_understood_and_promises_nothing(text: str) -> None:
    plain = "a ARRAY<BIGINT>, s STRUCT<n: BIGINT>, m MAP<STRING, BIGINT>"

    assert parse(text) == parse(plain)
    assert parse(plain) == spark.StructType(
        [
            spark.StructField("a", spark.ArrayType(LONG)),
            spark.StructField("s", spark.StructType([spark.StructField("n", LONG)])),
            spark.StructField("m", spark.MapType(spark.StringType(), LONG)),
        ]
    )


def test_what_spark_wrote_is_read() -> None:
    schema = parse("a INT, b ARRAY<DATE>, c MAP<STRING, DECIMAL(7, 2)>")

    assert parse(schema.json()) == schema


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "fields such as"),
        ("a", "a type for a is missing"),
        ("a MAP<INT, STRING>", "the keys of a are no STRING"),
        ("a MAP<STRING>", "',' is missing in front of '>'"),
        ("a DECIMAL(39, 2)", "at most DECIMAL(38, 38)"),
        ("a DECIMAL(2, 3)", "at most DECIMAL(38, 38)"),
        ("a DECIMAL(0)", "at most DECIMAL(38, 38)"),
        ("a DECIMAL(x)", "'x' is no number of digits of a"),
        ("a DECIMAL(3", "')' is missing"),
        ("a BINARY", "a is BINARY"),
        ("a INT b INT", "',' is missing in front of 'b'"),
        ("a INT,", "a name is missing"),
        ("a INT, a INT", "different names"),
        ("userId INT, userid INT", "different names: userId and userid are one"),
        ("a ARRAY<STRUCT<b INT, B INT>>", "different names: b and B are one"),
        ("a MAP<STRING, STRUCT<b INT, B INT>>", "different names: b and B are one"),
        (ALIKE.json(), "different names: a and A are one to Spark"),
        ("a ARRAY<INT", "'>' is missing"),
        ("a ARRAY INT", "'<' is missing in front of 'INT'"),
        ("a STRUCT<b INT", "'>' is missing"),
        ("< INT", "'<' is no name"),
        ("a ; INT", "'; INT' is none"),
        ("a " + "ARRAY<" * 60 + "INT" + ">" * 60, "nested no deeper"),
        ('{"type": "map"}', "as Spark writes it"),
        (BINARY.json(), "a is binary"),
        (NUMBERS.json(), "a is map<int,string>"),
    ],
)
def test_what_is_no_schema(text: str, reason: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse(text)

    assert reason in str(caught.value)
    assert caught.value.name == "valueSchema"
