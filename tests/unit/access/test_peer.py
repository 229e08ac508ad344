from __future__ import annotations

from penstock.access.peer import Peer


def test_no_two_peers_have_one_number() -> None:
    peers = [Peer("line", 0.0) for _ in range(10)]

    assert len({one.number for one in peers}) == 10
    assert all(one.bytes_in == one.bytes_out == 0 for one in peers)
