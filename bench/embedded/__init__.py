"""The embedded broker beside Python peers: publishing, handling, replaying."""
