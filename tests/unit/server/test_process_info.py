from __future__ import annotations

from pathlib import Path

from penstock.http.options import HttpOptions
from penstock.server.process_info import ServerProcessInfo
from penstock.server.settings import Settings
from tests.unit.server.scene import Echo, house, run


def test_a_server_tells_what_is_around_its_broker(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            status = tmp_path / "status.json"
            now_ms = int(one.clock.now_s() * 1000)
            status.write_text(f'{{"running": true, "stages": [], "at_ms": {now_ms}}}')
            http = HttpOptions(pipeline_status=str(status))
            process = ServerProcessInfo(one.engine, Settings(http=http))
            await one.listen(Echo)
            client = await one.connect()
            await client.lines(1)

            assert process.connection_counts() == {"test": 1}
            assert [row.gateway for row in process.connections()] == ["test"]
            assert process.pipeline().running
            assert process.processes().processes[0].name == "broker"
            keys = [row.key for row in process.settings()]
            assert "http.pipeline_status" in keys

    run(scene())


def test_a_program_has_no_settings_and_no_pipeline(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            process = ServerProcessInfo(one.engine)

            assert process.settings() == []
            assert not process.pipeline().running

    run(scene())
