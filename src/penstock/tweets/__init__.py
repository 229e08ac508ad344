"""Made-up tweets that are the same every time, and a server that streams them."""
