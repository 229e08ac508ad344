"""mosquitto_pub and mosquitto_sub, as people use them in a shell."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.interop.brokers import REFERENCE, Broker

ANSWER_S = 30.0
VERSIONS = {"v3.1": "mqttv31", "v3.1.1": "mqttv311", "v5": "mqttv5"}
LINE = "%t|%q|%r|%p"

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        shutil.which("mosquitto_pub") is None,
        reason="component: mosquitto-clients (not installed)",
    ),
]


@pytest.fixture(params=VERSIONS.values(), ids=list(VERSIONS))
def words(request: pytest.FixtureRequest, broker: Broker) -> list[str]:
    """Where to, and in which version."""
    return words_for(broker, request.param)


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_message_comes_with_the_lower_of_both_qos(
    words: list[str], topic: str, sent: int, granted: int
) -> None:
    with subscriber(words, "-t", f"{topic}/#", "-q", str(granted), "-C", "1") as lines:
        publish(words, "-t", f"{topic}/a", "-q", str(sent), "-m", "hello")

        assert next(lines) == f"{topic}/a|{min(sent, granted)}|0|hello"


def test_lines_of_a_pipe_come_once_and_in_order(words: list[str], topic: str) -> None:
    # Mosquitto 2.0.11 itself loses the subscriber of version 5 after 160 or so.
    count = 100 if REFERENCE else 500
    text = "".join(f"{number}\n" for number in range(count))
    with subscriber(words, "-t", topic, "-q", "2", "-C", str(count)) as lines:
        publish(words, "-t", topic, "-q", "2", "-l", text=text)

        got = list(lines)
    assert got == [f"{topic}|2|0|{number}" for number in range(count)]


def test_a_retained_message_greets_and_can_be_removed(
    words: list[str], topic: str
) -> None:
    publish(words, "-t", topic, "-q", "1", "-r", "-m", "state")
    with subscriber(words, "-t", topic, "-q", "1", "-C", "1") as lines:
        assert next(lines) == f"{topic}|1|1|state"

    publish(words, "-t", topic, "-q", "1", "-r", "-n")
    with subscriber(words, "-t", topic, "-q", "1", "-C", "1") as lines:
        publish(words, "-t", topic, "-q", "1", "-m", "fresh")
        assert next(lines) == f"{topic}|1|0|fresh"


def test_a_will_is_published_when_the_program_is_killed(
    words: list[str], topic: str
) -> None:
    will = ("--will-topic", topic, "--will-payload", "gone", "--will-qos", "1")
    with subscriber(words, "-t", topic, "-q", "1", "-C", "1") as lines:
        with subscriber(words, "-t", f"{topic}/other", *will):
            pass  # killed at the end of the block

        assert next(lines) == f"{topic}|1|0|gone"


def test_a_session_keeps_messages_between_two_runs(
    words: list[str], topic: str
) -> None:
    kept = ["-i", topic[-20:], "-c", "-q", "1", "-t", topic, "-C", "3"]
    if "mqttv5" in words:
        kept += ["-x", "3600"]
    with subscriber(words, *kept):
        pass
    for number in range(3):
        publish(words, "-t", topic, "-q", "1", "-m", str(number))

    with subscriber(words, *kept) as lines:
        got = [next(lines) for _ in range(3)]

    assert got == [f"{topic}|1|0|{number}" for number in range(3)]


def test_two_programs_share_a_subscription(broker: Broker, topic: str) -> None:
    words = words_for(broker, "mqttv5")
    # They end by themselves after some seconds.
    shared = ("-t", f"$share/group/{topic}", "-q", "1", "-W", "4")
    with (
        subscriber(words, "-t", topic, "-q", "1", "-C", "50") as everything,
        subscriber(words, *shared) as left,
        subscriber(words, *shared) as right,
    ):
        text = "".join(f"{number}\n" for number in range(50))
        publish(words, "-t", topic, "-q", "1", "-l", text=text)

        assert len([next(everything) for _ in range(50)]) == 50
        divided = sorted([*left, *right])

    assert divided == sorted(f"{topic}|1|0|{number}" for number in range(50))


def test_properties_of_version_5_arrive(broker: Broker, topic: str) -> None:
    words = words_for(broker, "mqttv5")
    form = ("-F", "%P|%C|%R|%D|%E|%p")
    with subscriber(words, "-t", topic, "-q", "1", *form, "-C", "1") as lines:
        publish(
            words,
            *("-t", topic, "-q", "1", "-m", "ask"),
            *("-D", "publish", "user-property", "room", "kitchen"),
            *("-D", "publish", "content-type", "text/plain"),
            *("-D", "publish", "response-topic", f"{topic}/answer"),
            *("-D", "publish", "correlation-data", "7"),
            *("-D", "publish", "message-expiry-interval", "60"),
        )

        pairs, kind, answer, correlation, expiry, text = next(lines).split("|")
    assert (pairs, kind, answer) == ("room:kitchen", "text/plain", f"{topic}/answer")
    assert (correlation, text) == ("7", "ask")
    assert 50 <= int(expiry) <= 60


def test_a_request_gets_its_response(broker: Broker, topic: str) -> None:
    words = words_for(broker, "mqttv5")
    with subscriber(words, "-t", topic, "-C", "1", "-F", "%R|%p") as lines:
        asking = subprocess.Popen(
            [
                *("mosquitto_rr", *words, "-t", topic, "-q", "1", "-W", "20"),
                *("-e", f"{topic}/answer", "-m", "question"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        with asking:
            assert next(lines) == f"{topic}/answer|question"
            publish(words, "-t", f"{topic}/answer", "-q", "1", "-m", "42")
            answer, _ = asking.communicate(timeout=ANSWER_S)

    assert answer == "42\n"


def words_for(broker: Broker, version: str) -> list[str]:
    return ["-h", "127.0.0.1", "-p", str(broker.port), "-V", version]


def publish(words: list[str], *more: str, text: str = "") -> None:
    done = subprocess.run(
        ["mosquitto_pub", *words, *more],
        input=text,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
    )
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def subscriber(words: list[str], *more: str) -> Iterator[Iterator[str]]:
    """The lines it prints, after it has subscribed; killed at the end of the block."""
    form = () if "-F" in more else ("-F", LINE)
    process = subprocess.Popen(
        ["stdbuf", "-oL", "mosquitto_sub", "-d", *words, *more, *form],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    lines = lines_of(process)
    try:
        # A kept session may deliver before it answers.
        early = []
        for line in lines:
            if line.startswith("Subscribed (mid"):
                break
            early.append(line)
        yield (line for source in (early, lines) for line in source if spoken(line))
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def spoken(line: str) -> bool:
    """Whether it is a message, and not a remark about packets."""
    return "|" in line and not line.startswith(("Client ", "Subscribed"))


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Line by line as they are printed; an error if none comes for long."""
    assert process.stdout is not None
    rest = b""
    number = process.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(number, selectors.EVENT_READ)
        deadline_s = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline_s:
            if not selector.select(1.0):
                continue
            if not (data := os.read(number, 1 << 16)):
                return
            *whole, rest = (rest + data).split(b"\n")
            yield from (line.decode() for line in whole)
            deadline_s = time.monotonic() + ANSWER_S
    raise TimeoutError(f"no line in {ANSWER_S} s")
