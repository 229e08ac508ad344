from __future__ import annotations

from penstock.access.grants import Grants
from penstock.access.quota import Quota
from penstock.desk.users import UserDesk
from penstock.desk.views.users import UsagePage
from penstock.log import Columns
from tests.unit.delivery.scene import Scene


def test_what_users_have_is_told_with_their_limits() -> None:
    scene = Scene()
    accounts = scene.broker.accounts
    quotas = {"bert": Quota(), "anna": Quota(topics=3, events_per_s=1)}
    accounts.look_up = quotas.__getitem__
    for name, quota in quotas.items():
        account = accounts.of(Grants(user=name, quota=quota))
        assert account is not None
        with accounts.acting(account):
            scene.broker.publish(f"of-{name}", Columns([b"x", b"x"]))
        account.connections = len(name) - len("ann")
    scene.commit()
    desk = UserDesk(scene.broker)

    page = desk.usage()

    anna, bert = page.users
    assert (anna.user, anna.connections, anna.topics) == ("anna", 1, 1)
    assert anna.limits == {"topics": 3, "events_per_s": 1}
    assert anna.wait_s == 1.0
    assert (bert.user, bert.connections, bert.limits) == ("bert", 1, {})
    assert bert.stored_bytes > 0
    assert desk.usage(limit=1) == UsagePage(users=[anna], more=True)
    assert desk.usage(after="anna").users == [bert]
    assert desk.usage(user="ANNA").users == [anna]


def test_asking_for_somebody_makes_nobody() -> None:
    scene = Scene()
    desk = UserDesk(scene.broker)

    assert desk.usage(user="nobody").users == []
    assert desk.usage() == UsagePage(users=[], more=False)
    assert not scene.broker.accounts.users()
