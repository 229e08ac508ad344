"""The control gateway: ``twitter`` starts a stream of tweets for a client saying it.

One pipeline runs for all, whether a client looks or not; a session shows what it does,
from now on. One that rests is asked to begin, and where there is none, or only a part
of it, the session says so and shows what comes all the same. Nothing is promised and
nothing is owed: what was sent is settled, and when the connection ends its subscription
does, and nothing else.
"""

from __future__ import annotations

from itertools import count

from penstock.broker.broker import Broker
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.desk.figures import Figures
from penstock.desk.views.figures import Pipeline
from penstock.errors import PenstockError
from penstock.gateway.gateway import WRONG_LINES, Gateway
from penstock.gateway.options import ControlOptions
from penstock.model.policy import Policy
from penstock.wire import control
from penstock.wire.lines import LineSplitter

_connections = count(1)
# Events that are rendered at once; a client that reads slowly gets no more.
_MANY = 500
_NO_PIPELINE = (
    "a pipeline, penstock up runs one; shown is what others publish to {topic}"
)
_NO_SPARK = "Spark: penstock up runs with --no-spark, tweets come to firehose only"


class ControlGateway(Gateway):
    """One session."""

    def __init__(
        self, broker: Broker, options: ControlOptions, figures: Figures
    ) -> None:
        """``figures`` know of the pipeline around the broker."""
        self._broker = broker
        self._figures = figures
        self._options = options
        self._splitter = LineSplitter(options.max_line_bytes)
        self._number = next(_connections)
        self._consumer: Consumer | None = None
        self._out: list[bytes] = []
        self._wrong = 0
        """Lines of this read that were no commands."""

    def connected(self, now_s: float) -> None:
        self._out.append(control.GREETING)

    def receive(self, data: bytes, now_s: float) -> None:
        self._wrong = 0
        for line in self._splitter.feed(data):
            if self.closing:
                return
            self._command(line)

    def eof(self, now_s: float) -> None:
        if self._splitter.rest:
            self._command(self._splitter.rest)
        if self._consumer is None:
            self.closing = True

    def output(self, now_s: float, room: int) -> list[bytes]:
        out, self._out = self._out, []
        if self._consumer is not None:
            portions = self._broker.take(self._consumer, now_s, _MANY)
            out += [
                control.tweets(one.page.payloads[one.lo : one.hi], self._number)
                for one in portions
            ]
        return out

    def disconnected(self, now_s: float) -> None:
        if self._consumer is not None:
            self._broker.detach(self._consumer)
            self._consumer = None

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        raise AssertionError("this protocol has no PUBREL")

    def moved(self, consumer: Consumer) -> None:
        """What comes next is sent as if nothing had been."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        self._consumer = None
        self._out.append(control.ended(reason))

    def _command(self, line: bytes) -> None:
        word = line.rstrip(b"\r")
        if word != control.START:
            is_help = word == control.HELP
            self._out.append(control.COMMANDS if is_help else control.OTHER)
            self._wrong += 1
            self.closing |= self._wrong >= WRONG_LINES
            return
        if self._consumer is not None:
            self._out.append(control.AGAIN)
            pipeline = self._figures.pipeline()
            if pipeline.resting and not pipeline.asked:  # it was not there yet
                self._begin(pipeline)
            return
        try:
            self._show()
        except PenstockError as error:
            self._out.append(control.failed(error.for_client))
            return
        self._out.append(control.STARTED)
        self._begin(self._figures.pipeline())

    def _begin(self, pipeline: Pipeline) -> None:
        """Have a stream that rests begin, and say what is missing for one."""
        if not pipeline.running:
            topic = self._options.topic
            self._out.append(control.missing(_NO_PIPELINE.format(topic=topic)))
            return
        if pipeline.resting:
            self._figures.ask_for_stream()
            self._out.append(control.WOKEN)
        if not pipeline.spark:
            self._out.append(control.missing(_NO_SPARK))

    def _show(self) -> None:
        """Subscribe to what comes from now on."""
        broker, topic = self._broker, self._options.topic
        if not broker.log.has_topic(topic):
            broker.create_topic(topic)
        policy = Policy(order="log", window=self._options.window, qos=0)
        name = f"$control-{self._number}"
        subscription = broker.subscribe(name, topic, policy, temporary=True)
        self._consumer = broker.attach(subscription, self)
