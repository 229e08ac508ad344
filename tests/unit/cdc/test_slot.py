"""Against a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from penstock.cdc import slot
from penstock.cdc.place import CapturePosition
from penstock.errors import CaptureLost, InvalidStore, StoreRefused, StoreUnreachable
from tests.postgres import in_database

TABLES = """
CREATE SCHEMA sales;
CREATE TABLE sales.orders (a int, b text, doc jsonb, PRIMARY KEY (b, a));
CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
"""
ORDERS = ("sales", "orders")
PARTS = ("public", "parts")
NAME = "penstock_shop"


@pytest.fixture
def connection(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with slot.connected(postgres_database) as connection:
        connection.execute(TABLES)
        yield connection


def published(connection: psycopg.Connection[Any]) -> set[tuple[str, str]]:
    query = "SELECT schemaname, tablename FROM pg_publication_tables"
    return set(connection.execute(query).fetchall())


@pytest.mark.parametrize("name", ["a b", "ü", "x" * 60, "a-b", "A_b"])
def test_some_names_cannot_be_one_of_a_slot(name: str) -> None:
    with pytest.raises(StoreRefused, match="cannot name a slot"):
        slot.slot_name(name, "postgresql://h/d")


def test_names_are_those_of_the_capture() -> None:
    assert slot.slot_name("my_shop2", "postgresql://h/d") == "penstock_my_shop2"
    assert slot.table_name("sales.orders") == ORDERS
    assert slot.table_name("parts") == PARTS


def test_a_publication_has_exactly_the_tables(
    connection: psycopg.Connection[Any],
) -> None:
    for tables in ([ORDERS], [ORDERS, PARTS], [PARTS], [PARTS]):
        slot.have_publication(connection, NAME, tables)

        # Of a table in parts, the whole.
        assert published(connection) == set(tables)


def test_a_slot_is_made_and_found_again(
    connection: psycopg.Connection[Any], postgres_database: str
) -> None:
    slot.have_publication(connection, NAME, [ORDERS])
    first = slot.have_slot(connection, postgres_database, NAME, None)

    assert slot.have_slot(connection, postgres_database, NAME, None) == first
    kept = CapturePosition("FFFFFFFF/0", "FFFFFFFF/8", 3)
    assert slot.have_slot(connection, postgres_database, NAME, kept) == kept


def test_a_slot_that_is_gone_or_beyond_the_place_has_lost_something(
    connection: psycopg.Connection[Any], postgres_database: str
) -> None:
    with pytest.raises(CaptureLost, match="slot penstock_shop is gone"):
        slot.have_slot(connection, postgres_database, NAME, CapturePosition("0/1"))
    slot.have_slot(connection, postgres_database, NAME, None)

    with pytest.raises(CaptureLost, match="was moved"):
        slot.have_slot(connection, postgres_database, NAME, CapturePosition("0/1"))


def test_a_slot_of_another_database_is_left_alone(
    connection: psycopg.Connection[Any], postgres_database: str, postgres_url: str
) -> None:
    slot.have_slot(connection, postgres_database, NAME, None)
    with (
        slot.connected(postgres_url) as other,
        pytest.raises(StoreRefused, match="--name"),
    ):
        slot.have_slot(other, postgres_url, NAME, None)

    assert not slot.drop(postgres_url, "shop")
    assert slot.drop(postgres_database, "shop")


def test_dropping_leaves_nothing(
    connection: psycopg.Connection[Any], postgres_database: str
) -> None:
    slot.have_publication(connection, NAME, [ORDERS])
    slot.have_slot(connection, postgres_database, NAME, None)

    assert slot.drop(postgres_database, "shop")

    assert published(connection) == set()
    assert not slot.drop(postgres_database, "shop")


def test_keys_are_those_of_the_primary_key_in_its_order(
    connection: psycopg.Connection[Any],
) -> None:
    assert slot.key_of(connection, ORDERS) == ("b", "a")
    assert slot.key_of(connection, ("public", "nowhere")) == ()


def test_a_document_wants_the_whole_row_of_before(
    connection: psycopg.Connection[Any], postgres_database: str
) -> None:
    slot.check(connection, postgres_database, [ORDERS], None)
    with pytest.raises(StoreRefused, match="orders has to have REPLICA IDENTITY FULL"):
        slot.check(connection, postgres_database, [ORDERS], "doc")

    connection.execute("ALTER TABLE sales.orders REPLICA IDENTITY FULL")

    slot.check(connection, postgres_database, [ORDERS], "doc")


def test_values_are_written_the_same_for_everybody(postgres_database: str) -> None:
    url = f"{postgres_database}&options=-c%20datestyle%3DGerman"
    with psycopg.connect(url) as plain:
        query = "SELECT '2030-02-01'::date::text"
        assert plain.execute(query).fetchone() == ("01.02.2030",)
    with slot.connected(postgres_database) as connection:
        assert connection.execute(query).fetchone() == ("2030-02-01",)
        assert connection.execute("SHOW timezone").fetchone() == ("UTC",)


def test_who_is_not_let_in_is_refused_for_good(postgres_url: str) -> None:
    with pytest.raises(StoreRefused, match="does not exist"):
        slot.connected(in_database(postgres_url, "nowhere"))


def test_a_server_that_is_away_may_come_back() -> None:
    with pytest.raises(StoreUnreachable):
        slot.connected("postgresql://me@127.0.0.1:1/db")
    with pytest.raises(InvalidStore):
        slot.connected("postgresql://me@h:port/db")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.OperationalError("server closed the connection"), StoreUnreachable),
        (psycopg.errors.AdminShutdown("shutting down"), StoreUnreachable),
        (psycopg.errors.ObjectInUse("slot is active for PID 1"), StoreUnreachable),
        (psycopg.errors.UndefinedTable("no such table"), StoreRefused),
        (psycopg.errors.InsufficientPrivilege("no"), StoreRefused),
        (psycopg.errors.ObjectNotInPrerequisiteState("lost"), StoreRefused),
    ],
)
def test_errors_pass_or_do_not(error: psycopg.Error, kind: type[Exception]) -> None:
    assert type(slot.judged(error, "postgresql://me:secret@h/d")) is kind


def test_the_end_of_the_log_moves(connection: psycopg.Connection[Any]) -> None:
    before = slot.end_of_log(connection)
    connection.execute("CREATE TABLE more (a int)")

    assert slot.end_of_log(connection) > before
