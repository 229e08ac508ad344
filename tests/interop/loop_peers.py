"""aiomqtt and gmqtt as peers: each in an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

import aiomqtt
import gmqtt
import paho.mqtt.client as paho
from gmqtt.mqtt.handler import MQTTError
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.peers import (
    ANSWER_S,
    KEPT_S,
    Message,
    Peer,
    Refused,
    connect_properties,
    message_of,
    publish_properties,
    reset_at_close,
    will_properties,
)

AIOMQTT_VERSIONS = {
    31: aiomqtt.ProtocolVersion.V31,
    311: aiomqtt.ProtocolVersion.V311,
    5: aiomqtt.ProtocolVersion.V5,
}
FIRST_ONLY = paho.MQTT_CLEAN_START_FIRST_ONLY
NEVER = -2  # less than the number of failures so far; -1 is for ever
GMQTT_VERSIONS = {311: gmqtt.constants.MQTTv311, 5: gmqtt.constants.MQTTv50}


class LoopPeer(Peer):
    """Waits in the test's thread for what a coroutine does in the other one."""

    def __init__(self, port: int, **topic_filter: Any) -> None:
        super().__init__(port, **topic_filter)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self.connected:
            self.drop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        bounded = asyncio.wait_for(work, ANSWER_S)
        try:
            return asyncio.run_coroutine_threadsafe(bounded, self._loop).result()
        except (TimeoutError, aiomqtt.MqttError, MQTTError) as error:
            raise Refused(f"{type(error).__name__}: {error}") from error


class Aiomqtt(LoopPeer):
    """aiomqtt 2: paho-mqtt inside a loop."""

    def connect(self) -> bool:
        present = bool(self.wait(self._connect()))
        self.connected = True
        return present

    def subscribe(self, topic_filter: str, qos: int) -> int:
        granted = self.wait(self._subscribe(topic_filter, qos))
        return int(getattr(granted[0], "value", granted[0]))

    def unsubscribe(self, topic_filter: str) -> None:
        self.wait(self._client.unsubscribe(topic_filter))

    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        *,
        retain: bool = False,
        user_properties: Sequence[tuple[str, str]] = (),
    ) -> None:
        properties = publish_properties(user_properties)
        self.wait(self._client.publish(topic, payload, qos, retain, properties))

    def disconnect(self) -> None:
        self.connected = False
        self.wait(self._leave())

    def drop(self) -> None:
        self.connected = False
        self.wait(self._drop())

    async def _connect(self) -> bool:
        topic_filter = self.topic_filter
        will = None
        if (last := topic_filter.will) is not None:
            properties = will_properties(topic_filter)
            will = aiomqtt.Will(
                last.topic, last.payload, last.qos, last.retain, properties
            )
        self._client = aiomqtt.Client(
            "127.0.0.1",
            topic_filter.port,
            username=topic_filter.user,
            password=topic_filter.password,
            identifier=topic_filter.client_id or None,
            protocol=AIOMQTT_VERSIONS[topic_filter.version],
            will=will,
            transport="websockets" if topic_filter.path else "tcp",
            websocket_path=topic_filter.path or None,
            tls_context=topic_filter.tls,
            clean_session=None if topic_filter.version == 5 else topic_filter.clean,
            clean_start=topic_filter.clean if topic_filter.version == 5 else FIRST_ONLY,
            properties=connect_properties(topic_filter)
            if topic_filter.version == 5
            else None,
        )
        present = False

        def heard(_: Any, __: Any, flags: Any, reason: Any, ___: Any) -> None:
            nonlocal present
            present = flags.session_present

        # It does not tell whether there was a session: one more listener does.
        told = self._client._client.on_connect

        def both(*words: Any) -> None:
            heard(*words)
            assert told is not None
            told(*words)

        self._client._client.on_connect = both
        await self._client.__aenter__()
        self._reading = asyncio.create_task(self._read())
        return present

    async def _subscribe(self, topic_filter: str, qos: int) -> Any:
        if self.topic_filter.version == 5:
            return await self._client.subscribe(
                topic_filter, options=SubscribeOptions(qos)
            )
        return await self._client.subscribe(topic_filter, qos)

    async def _read(self) -> None:
        async for message in self._client.messages:
            self._arrived.put(message_of(message))

    async def _leave(self) -> None:
        await self._stop_reading()
        await self._client.__aexit__(None, None, None)

    async def _drop(self) -> None:
        await self._stop_reading()
        if (sock := self._client._client.socket()) is not None:
            reset_at_close(sock)
            self._client._client._sock_close()
        if (task := self._client._misc_task) is not None:
            await asyncio.gather(task, return_exceptions=True)

    async def _stop_reading(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


class Gmqtt(LoopPeer):
    """gmqtt: a codec and handshakes of its own."""

    def __init__(self, port: int, **topic_filter: Any) -> None:
        super().__init__(port, **topic_filter)
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._client = self.wait(self._made())

    def connect(self) -> bool:
        present = bool(self.wait(self._connect()))
        self.connected = True
        return present

    def subscribe(self, topic_filter: str, qos: int) -> int:
        return int(self.wait(self._subscribe(topic_filter, qos)))

    def unsubscribe(self, topic_filter: str) -> None:
        self.wait(self._unsubscribe(topic_filter))

    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        *,
        retain: bool = False,
        user_properties: Sequence[tuple[str, str]] = (),
    ) -> None:
        pairs = {"user_property": list(user_properties)} if user_properties else {}
        self.wait(self._publish(topic, payload, qos, retain, pairs))

    def disconnect(self) -> None:
        self.connected = False
        self.wait(self._client.disconnect())

    def drop(self) -> None:
        self.connected = False
        self.wait(self._drop())

    async def _made(self) -> gmqtt.Client:
        topic_filter = self.topic_filter
        options = dict(topic_filter.properties)
        if topic_filter.version == 5 and not topic_filter.clean:
            options["session_expiry_interval"] = KEPT_S
        will = None
        if topic_filter.will is not None:
            delay = {"will_delay_interval": topic_filter.will_delay_s}
            will = gmqtt.Message(
                topic_filter.will.topic,
                topic_filter.will.payload,
                qos=topic_filter.will.qos,
                retain=topic_filter.will.retain,
                **(delay if topic_filter.will_delay_s else {}),
            )
        client = gmqtt.Client(
            topic_filter.client_id or None,
            clean_session=topic_filter.clean,
            will_message=will,
            **options,
        )
        client.set_config({"reconnect_retries": NEVER})
        if topic_filter.user is not None:
            client.set_auth_credentials(topic_filter.user, topic_filter.password)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_subscribe = self._on_subscribe
        client.on_unsubscribe = self._on_unsubscribe
        return client

    async def _connect(self) -> bool:
        self._present = False
        self._lost = self._loop.create_future()
        connecting = asyncio.ensure_future(
            self._client.connect(
                "127.0.0.1",
                self.topic_filter.port,
                ssl=self.topic_filter.tls or False,
                version=GMQTT_VERSIONS[self.topic_filter.version],
            )
        )
        # It would wait for an answer on a connection that is gone.
        first = asyncio.FIRST_COMPLETED
        done, _ = await asyncio.wait({connecting, self._lost}, return_when=first)
        if connecting not in done:
            connecting.cancel()
            raise Refused("the connection was closed")
        connecting.result()
        return self._present

    async def _subscribe(self, topic_filter: str, qos: int) -> int:
        self._granted: asyncio.Future[int] = self._loop.create_future()
        self._client.subscribe(topic_filter, qos=qos)
        return await self._granted

    async def _unsubscribe(self, topic_filter: str) -> None:
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._client.unsubscribe(topic_filter)
        await self._gone

    async def _publish(
        self, topic: str, payload: bytes, qos: int, retain: bool, pairs: dict[str, Any]
    ) -> None:
        self._client.publish(topic, payload, qos=qos, retain=retain, **pairs)
        await self._client._persistent_storage.wait_empty()

    async def _drop(self) -> None:
        self._client._is_active = False
        self._client._connection._transport.abort()

    def _on_connect(self, _: Any, flags: int, reason: int, __: Any) -> None:
        self._present = bool(flags & 1)

    def _on_disconnect(self, *_: Any) -> None:
        if not self._lost.done():
            self._lost.set_result(None)

    def _on_message(
        self, _: Any, topic: str, payload: bytes, qos: int, properties: dict[str, Any]
    ) -> int:
        self._arrived.put(
            Message(
                topic=topic,
                payload=bytes(payload),
                qos=qos,
                retain=bool(properties["retain"]),
                user_properties=tuple(map(tuple, properties.get("user_property", ()))),
            )
        )
        return 0

    def _on_subscribe(self, _: Any, __: int, granted: Any, ___: Any) -> None:
        self._granted.set_result(granted[0])

    def _on_unsubscribe(self, *_: Any) -> None:
        self._gone.set_result(None)
