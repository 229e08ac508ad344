from __future__ import annotations

from penstock.gateway.maze.followers import Followers


def test_a_follow_is_remembered():
    followers = Followers()

    followers.follow(60, 50)

    assert followers.of(50) == {60}
    assert followers.of(60) == set()


def test_a_double_follow_counts_once():
    followers = Followers()
    followers.follow(60, 50)
    followers.follow(60, 50)

    followers.unfollow(60, 50)

    assert followers.of(50) == set()


def test_a_user_may_follow_itself():
    followers = Followers()

    followers.follow(7, 7)

    assert followers.of(7) == {7}


def test_unfollowing_without_a_follow_changes_nothing():
    followers = Followers()
    followers.follow(1, 2)

    followers.unfollow(3, 2)
    followers.unfollow(3, 4)

    assert followers.graph == {2: {1}}


def test_a_user_without_followers_takes_no_memory():
    followers = Followers()
    followers.follow(1, 2)

    followers.unfollow(1, 2)

    assert followers.graph == {}


def test_clear_forgets_in_place():
    followers = Followers({2: {1}})
    graph = followers.graph

    followers.clear()

    assert graph == {}
    assert followers.graph is graph
