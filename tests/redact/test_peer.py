"""Another scanner for secrets, detect-secrets: what it reports for sure is taken out."""

import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact import harmless, unseen
from tests.redact.corpus import samples
from tests.redact.shapes import drawn

pytest.importorskip("detect_secrets", reason="the test dependencies are not installed")
_REDACTOR = Redactor(Redact())
# Its detectors that go by a form of tokens. The others go by words, by entropy or look for addresses of the network.
_DETECTORS: Final = {
    "artifactory": "ArtifactoryDetector",
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector",
    "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
# The beginning of a pattern of it -> why not everything that it reports goes.
_DIFFERENCES: Final = {
    r'(?:\s|=|:|"|^)AP[': "ten letters and digits behind AP are a part number as well",
    r'(?:\s|=|:|"|^)AKC[': "a key of Artifactory has AKCp, and more signs",
    r"[MNO][a-zA-Z": "a token of Discord begins with the base64 of a number",
    r"\d{8,10}:[0-9A-Za-z_-]{35}": "a token of Telegram has AA behind the colon",
    "AC[a-z0-9]{32}": "an account of Twilio is hexadecimal",
    "SK[a-z0-9]{32}": "a key of Twilio is hexadecimal, or has capitals",
    "[0-9a-z]{32}-us": "a key of Mailchimp is hexadecimal",
    "sq0csp-": "a secret of Square has no backslash",
    "https://hooks": "a hook of Slack is longer than the shortest that the pattern takes",
}


def _detectors() -> Iterator[Any]:
    for module, name in _DETECTORS.items():
        yield getattr(import_module(f"detect_secrets.plugins.{module}"), name)()


def _reported(detector: Any, text: str) -> list[str]:
    return [found for line in text.splitlines() for found in detector.analyze_string(line) if found]


def _patterns() -> list[tuple[str, Any]]:
    return [
        (pattern.pattern, detector)
        for detector in _detectors()
        for pattern in detector.denylist
        if not pattern.pattern.startswith(("aws", "eyJ"))  # a word tells the one, JSON inside the other
    ]


def _left(pattern: str, detector: Any) -> tuple[int, list[str]]:
    """How many secrets it reports in texts made for one of its patterns, and those that are not taken out."""
    count, left = 0, []
    for number in range(20):
        token = drawn(pattern, random.Random(f"{pattern}/{number}"))
        text = f"I made a new one, it is {token.strip()} and works"
        redacted = _REDACTOR.redact(text).text
        for secret in _reported(detector, text):
            count += 1
            left += [secret] if secret.strip(' "=:') in redacted else []
    return count, left


@pytest.mark.parametrize(("pattern", "detector"), _patterns(), ids=lambda value: str(value)[:40])
def test_what_its_patterns_describe_goes(pattern: str, detector: Any) -> None:
    """Or the list of differences says why not."""
    count, left = _left(pattern, detector)
    explained = any(pattern.startswith(beginning) for beginning in _DIFFERENCES)
    assert count
    assert bool(left) is explained, left


@pytest.mark.long
def test_what_it_reports_in_the_corpora_goes() -> None:
    """In texts that were written for memd."""
    texts = [sample.text for sample in samples(seed=3)]
    texts += [message.text for file in unseen.FILES for message in unseen.messages(file)]
    detectors = list(_detectors())
    count = 0
    for text in texts:
        found = [secret for detector in detectors for secret in _reported(detector, text)]
        redacted = _REDACTOR.redact(text).text
        assert [secret for secret in found if secret.strip(' "=:') in redacted] == [], text
        count += len(found)
    assert count > 50


def test_what_it_reports_in_harmless_texts_is_little() -> None:
    """So that it says something where it reports one."""
    detectors = list(_detectors())
    texts = list(harmless.texts(1))
    reported = [text for text in texts if any(_reported(detector, text) for detector in detectors)]
    assert len(reported) < 0.02 * len(texts), reported
