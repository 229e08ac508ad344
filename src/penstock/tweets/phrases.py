"""What made-up people are called, what they say, and in which language.

In a phrase ``{w}`` is a word of the AFINN list, ``{n}`` is what it is about. Phrases
without ``{w}`` say nothing about feelings.
"""

from __future__ import annotations

# Language -> phrases. The first language is that of most tweets.
PHRASES: dict[str, tuple[str, ...]] = {
    "en": (
        "I {w} the new {n}, it is so {w}!",
        "what a {w} {n} today...",
        "{w}, {w}, {w}! the {n} made my day",
        "Can anybody explain why the {n} is {w}?",
        "the {n} was {w} / the rest: {w}",
        "{n} | {w} | {w}",
        "No {w} for the {n}; still {w}.",
        "waiting for the {n}: day 3",
        "My honest opinion on the {n}: {w}. Sorry, not sorry!",
        "so {w}",
        "{w}?! {w}!!!",
        "thinking about the {n} again and how {w} it could have been, but here we are",
        "https://t.co/x{n} a must read, {w}",
        "{n}",
        "!!!",
    ),
    "es": (
        "hoy el {n} fue {w}, ¿no?",
        "¡qué {n}! nada más que decir",
        "otra vez {n}...",
    ),
    "pt": ("que {n} {w}!", "saudade do {n}, gente"),
    "ja": ("{n}が好きです", "今日の{n}は {w} でした!", "おはようございます"),
    "ro": ("ce {n} {w} azi, nu-mi vine să cred", "mâine iar {n}; abia aștept"),
    "ru": ("какой {w} {n} сегодня!", "снова {n}, ну что ж"),
    "ar": ("مساء الخير", "{n} {w} اليوم"),
    "de": ("das {n} war {w}, ehrlich gesagt.", "schon wieder {n}? na gut"),
}

NOUNS = (
    *(
        "album",
        "bridge",
        "budget",
        "bus",
        "cat",
        "coffee",
        "concert",
        "course",
        "debate",
    ),
    *("election", "episode", "exam", "festival", "film", "game", "garden", "holiday"),
    *("interview", "lecture", "match", "meeting", "menu", "museum", "office", "park"),
    *(
        "phone",
        "podcast",
        "poem",
        "queue",
        "rain",
        "recipe",
        "release",
        "river",
        "road",
    ),
    *("school", "season", "service", "song", "speech", "station", "stream", "summer"),
    *("team", "theatre", "ticket", "trailer", "train", "update", "village", "weather"),
)

EMOJI = ("😂", "❤️", "😍", "🙏", "🔥", "😭", "🎉", "👍🏽", "🤔", "👩‍👧", "🇲🇩", "⚽")

FIRST_NAMES = (
    *("Ada", "Alexandru", "Amina", "Ana", "Andrei", "Anna", "Bruno", "Carlos", "Chen"),
    *("Chloe", "Daniel", "Diego", "Elena", "Emma", "Fatima", "Felix", "Hana", "Ines"),
    *("Ion", "Ivan", "James", "Jonas", "Julia", "Kenji", "Laura", "Leila", "Liam"),
    *("Lucia", "Maria", "Marco", "Mihai", "Nadia", "Noah", "Olga", "Omar", "Paul"),
    *("Rosa", "Sofia", "Tariq", "Vera", "Yuki", "Zoë"),
)

LAST_NAMES = (
    *("Almeida", "Becker", "Brown", "Ceban", "Costa", "Diaz", "Dubois", "Fischer"),
    *("Garcia", "Haddad", "Ionescu", "Ivanova", "Johnson", "Kim", "Kowalski", "Lopez"),
    *("Meyer", "Moraru", "Müller", "Nakamura", "Novak", "O'Neill", "Okafor", "Petrov"),
    *("Popa", "Rossi", "Rusu", "Sato", "Silva", "Smith", "Tanaka", "Weber", "Wilson"),
)

# The first are the most popular; made longer by names and years.
HASHTAGS = (
    *("news", "music", "love", "NowPlaying", "football", "BTS", "travel", "photo"),
    *("TBT", "weather", "food", "art", "science", "Gaming", "день", "日本", "coding"),
    *("MondayMotivation", "fail", "win", "health", "books", "cinema", "elecciones"),
)
