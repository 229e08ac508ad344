"""What Mosquitto 2.0 is known to do otherwise: test -> what it does.

Every entry has to fail there, so none outlives its reason. Penstock has no such list.
"""

from __future__ import annotations

FLAGS = "it ignores reserved flags of acknowledgements and pings"
QUIET = "it takes the packet"

MOSQUITTO: dict[str, str] = {
    **{
        f"test_reserved_flags_end_the_connection[{version}-{kind}]": FLAGS
        for version in ("v311", "v5")
        for kind in ("PUBACK", "PUBREC", "PUBCOMP", "PINGREQ")
    },
    "test_an_unsettled_identifier_is_not_used_when_all_others_were": (
        "it counts on and uses an identifier that is still held"
    ),
    "test_no_packet_is_larger_than_the_client_allows": (
        "it does not count the first byte"
    ),
    "test_a_message_too_large_counts_as_delivered": (
        "a message that is too large keeps its place in the window"
    ),
    "test_a_client_that_comes_again_takes_over[v5]": (
        "it closes without saying that another took over"
    ),
    "test_a_will_does_not_wait_longer_than_its_session": (
        "the will waits for its delay though the session has ended"
    ),
    "test_a_will_of_a_session_that_is_replaced_does_not_wait": (
        "the will is forgotten, though the session was not resumed"
    ),
    "test_filters_are_allowed_or_refused_one_by_one": (
        "it grants every filter and looks at single messages"
    ),
    "test_a_message_of_qos_0_is_never_marked_as_sent_again": QUIET,
    "test_bad_texts_in_properties_end_the_connection[response topic with +]": QUIET,
    "test_bad_texts_in_properties_end_the_connection[response topic with #]": QUIET,
    "test_a_publisher_that_gives_a_subscription_identifier_is_cut_off": QUIET,
    "test_more_unsettled_messages_than_the_server_takes_end_the_connection": (
        "it stops answering"
    ),
    "test_a_malformed_acknowledgement_ends_the_connection[bytes left over]": QUIET,
    "test_no_local_with_a_shared_subscription_ends_the_connection": QUIET,
    "test_a_filter_that_is_none_is_refused_in_a_packet_that_fits": QUIET,
    **{
        f"test_only_a_normal_goodbye_drops_the_will[{reason}]": (
            "it drops the will for every reason but 4"
        )
        for reason in (128, 131, 153)
    },
    "test_a_malformed_disconnect_is_not_a_goodbye[reason not defined]": QUIET,
    "test_authentication_data_without_a_method_is_turned_away": QUIET,
    **{
        f"test_a_packet_that_only_servers_send_ends_the_connection[{case}]": QUIET
        for case in ("v311-SUBACK", "v311-UNSUBACK", "v311-PINGRESP", "v5-PINGRESP")
    },
    "test_bytes_in_a_packet_that_has_none_end_the_connection[12]": QUIET,
    "test_a_publish_with_bad_properties_ends_the_connection[payload format 2]": QUIET,
    "test_a_message_the_subscriber_refused_is_done_with": (
        "a message that was refused keeps its place in the window"
    ),
    **{
        f"test_a_shared_filter_without_a_name_or_a_filter_is_refused[{filter}]": QUIET
        for filter in ("$share//a", "$share/g", "$share/g/", "$share/")
    },
    "test_retained_messages_are_not_sent_to_shared_subscriptions": "it sends them",
    **{
        f"test_no_more_messages_are_under_way_than_the_client_takes[3-{qos}]": (
            "it sends more when the window opens again"
        )
        for qos in (1, 2)
    },
    "test_the_window_of_a_session_counts_after_a_reconnect": (
        "it sends everything again at once"
    ),
    "test_a_text_frame_ends_the_connection": QUIET,
}
