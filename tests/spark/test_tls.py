"""The source and the sink over TLS, on a real Spark: driver and tasks alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.client import connect
from penstock.server.users_file import set_certificate
from tests.interop.certificates import Certificates
from tests.serving import serving

pytestmark = pytest.mark.spark

WAIT_S = 120


def test_a_stream_is_read_and_written_over_tls_by_a_certificate(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = Certificates(tmp_path)
    users = tmp_path / "users"
    set_certificate(users, "client")
    config = tmp_path / "penstock.toml"
    config.write_text("[tls]\ncert_users = 'cn'\nrequire_client_cert = true\n")
    flags = ["--config", config, "--users-file", users, "--mqtts-port", "0"]
    flags += ["--tls-cert", made.server[0], "--tls-key", made.server[1]]
    flags += ["--tls-client-ca", made.authority]
    with serving(tmp_path, *map(str, flags)) as broker:
        with connect(broker.data) as client:
            client.publish("a", [b"1", b"2", b"3"])
        said = {
            "servers": f"penstock+tls://127.0.0.1:{broker.ports['native']}",
            "caFile": str(made.authority),
            "certFile": str(made.client[0]),
            "keyFile": str(made.client[1]),
        }
        stream = spark.readStream.format("penstock").options(**said)
        frame = stream.options(subscribe="a", startingOffsets="earliest").load()
        writer = frame.select("value").writeStream.format("penstock").options(**said)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))

        query = writer.option("topic", "b").trigger(availableNow=True).start()

        assert query.awaitTermination(WAIT_S)
        table = spark.read.format("penstock").options(**said, subscribe="b").load()
        found = sorted(bytes(row.value) for row in table.collect())
    assert found == [b"1", b"2", b"3"]
