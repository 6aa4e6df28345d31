"""What may not be written down."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.telemetry.redact import MAX_TEXT_BYTES, REDACTED, redact_text, redact_value

PRESIGNED = (
    "https://s3.example.com/media/a.mp4?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20260101"
    "&X-Amz-Signature=deadbeef"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no secret here", "no secret here"),
        (f"GET {PRESIGNED} gave 403.", "GET https://s3.example.com/media/a.mp4?*** gave 403."),
        ("(https://h/a?b=c), next", "(https://h/a?***), next"),
        ("https://user:pw@h:8443/a#top", "https://***@h:8443/a#top"),
        ("https://video.example/@channel/1", "https://video.example/@channel/1"),
        ("postgresql://app:p%40ss@db:5432/x?sslmode=require", "postgresql://***@db:5432/x?***"),
        ("postgres://app:un/esc@ped@db/x", "postgres://***@db/x"),
        ("host=db user=app password=hunter2 dbname=x", "host=db user=app password=*** dbname=x"),
        ("password='two words' next", "password=*** next"),
        ('{"api_key": "sk-123", "n": 1}', '{"api_key": ***, "n": 1}'),
        (
            "AWS_SECRET_ACCESS_KEY=abc AWS_ACCESS_KEY_ID=AKIA",
            "AWS_SECRET_ACCESS_KEY=*** AWS_ACCESS_KEY_ID=***",
        ),
        ("Authorization: Basic dXNlcjpwdw==\nHost: h", "Authorization: ***\nHost: h"),
        ("sent Bearer eyJhbGciOiJIUzI1NiJ9.e30", "sent Bearer ***"),
        ("Basic authentication required", "Basic authentication required"),
        ('password authentication failed for user "app"', 'password authentication failed for user "app"'),
        ("lease_token=42 worker_token=42", "lease_token=42 worker_token=***"),
        ("s3://bucket/key file:///a/b", "s3://bucket/key file:///a/b"),
    ],
)
def test_secrets_leave_the_text_and_the_rest_stays(text: str, expected: str) -> None:
    assert redact_text(text) == expected


@given(st.text() | st.sampled_from([PRESIGNED, "postgres://a:b@c/d"]).map(lambda url: f"{url} {url}"))
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)


def test_endless_text_keeps_its_beginning_and_its_end() -> None:
    short = redact_text("first " + "ä" * 100_000 + " last")

    assert len(short.encode()) <= MAX_TEXT_BYTES
    assert short.startswith("first ")
    assert short.endswith(" last")


def test_secret_that_lies_on_the_cut_does_not_leak_its_tail() -> None:
    for shift in range(0, 400, 7):
        text = "x" * shift + " " + "a " * (MAX_TEXT_BYTES // 4 - 100) + PRESIGNED + " b" * (MAX_TEXT_BYTES // 4)
        assert "deadbeef" not in redact_text(text)


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["a", "a.", "token", "://", "password ", "?"])
def test_long_hostile_text_takes_no_time(piece: str) -> None:
    redact_text(piece * 200_000)


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "PGPASSWORD",
        "secret_access_key",
        "aws_access_key_id",
        "api_token",
        "Authorization",
        "apiKey",
        "cookie",
    ],
)
def test_values_under_secret_names_are_hidden(key: str) -> None:
    assert redact_value({"outer": {key: "x"}}) == {"outer": {key: REDACTED}}


def test_other_values_keep_their_shape() -> None:
    value = {
        "lease_token": 7,
        "key": "a/b.mp4",
        "n": 1.5,
        "ok": True,
        "none": None,
        "password": None,
        "tokens": 3,
    }

    assert redact_value(value) == value


def test_leaves_of_any_type_become_safe_json() -> None:
    value = {"path": Path("/a"), "error": ValueError(PRESIGNED), "urls": ("https://h/?a",)}

    assert json.loads(json.dumps(redact_value(value))) == {
        "path": "/a",
        "error": "https://s3.example.com/media/a.mp4?***",
        "urls": ["https://h/?***"],
    }
