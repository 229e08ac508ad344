"""What docs/performance.md says about the MQTT cells, around their table."""

from __future__ import annotations

BEGIN, END = "<!-- measured mqtt: begin -->", "<!-- measured mqtt: end -->"
SECTION = f"""
## MQTT beside its peers

```
make bench-peers BENCH_ARGS="--only mqtt"                # about thirteen minutes
make bench-peers BENCH_ARGS="--only mqtt --quick"        # short runs, for a first look
make bench-peers BENCH_ARGS="--only mqtt --write-docs"   # renew the table below
```

One client for all: raw sockets in one process, MQTT 3.1.1, every publish made before
the clock starts, every delivery answered as its QoS wants it. Contenders take turns;
each row is the median of three. A message counts when it was delivered, and with QoS 1
and 2 when both handshakes are over. Ratios are those of the CPU seconds of the server:
the client is as busy as the fastest of them.

- *Penstock*: `penstock serve` with its defaults. QoS 1 and 2 are acknowledged when the
  disk has them; QoS 0 is written as well.
- *Mosquitto*: persistence on, which is a picture of memory written every half hour; no
  limit on what waits for a client, because it drops messages at them.
- *amqtt*: its defaults, nothing on disk; with 100 B only, as it takes its time.

*1 to 1*, *1 to 1 000* and *1 000 to 1* are publishers and subscribers of one topic with
many messages in flight; in a *kept session* the subscriber's state outlives its
connection. *One message each*: every connection publishes to itself, and waits for the
end of all handshakes before it does so again.

{BEGIN}
{END}
"""
PLACE = (SECTION, BEGIN, END)
