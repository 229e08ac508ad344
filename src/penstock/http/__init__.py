"""HTTP: routes over the desk, streams of events, the files of the dashboard."""
