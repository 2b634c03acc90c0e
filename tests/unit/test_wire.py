"""Frames of the sequencer's socket: whole, in pieces, too long, or nonsense."""

from dataclasses import replace

import pytest

from domain.ids import PrincipalId, TenantId
from domain.principal import Principal, Role
from domain.record import IngressPlace
from domain.refusals import Offer, Reason
from domain.submission import Outcome, OutcomeFact, OutcomeKind, RefusalTold, Submission
from domain.timespan import Instant
from schemas.codec import Malformed
from schemas.wire import (
    FRAME_BYTES_MAX,
    HEADER,
    decode_outcome,
    decode_submission,
    encode_outcome,
    encode_submission,
    frame,
    split,
)

PRINCIPAL = Principal(PrincipalId("p-1"), Role.TENANT, TenantId("vision"), PrincipalId("p-2"))
SUBMISSION = Submission(
    PRINCIPAL,
    "key-1",
    "RequestReservation.v1",
    b"\0body",
    Instant(1_764_590_400_000_000),
    IngressPlace("gpuledger.commands.v1", 0, 7),
    dry_run=True,
)
BARE = Submission(Principal(PrincipalId("p-1"), Role.OPERATOR), "key-1", "Thaw.v1", b"")
FACT = OutcomeFact(8, "TenantTagged.v1", "tenant/vision", 2, Instant(1), b"body")
ACCEPTED = Outcome(OutcomeKind.ACCEPTED, "0" * 32, 8, 9, (FACT, replace(FACT, seq=9)))
REFUSED = Outcome(
    OutcomeKind.REFUSED,
    "0" * 32,
    8,
    8,
    refusal=RefusalTold(Reason.QUOTA, {"short": "8000"}, (Offer(Instant(1), Instant(2)),)),
    is_repeat=True,
)


@pytest.mark.parametrize("submission", [SUBMISSION, BARE])
def test_a_submission_arrives_as_it_was_sent(submission: Submission) -> None:
    assert decode_submission(encode_submission(submission)) == submission


@pytest.mark.parametrize("role", Role)
def test_every_role_can_speak(role: Role) -> None:
    submission = replace(BARE, principal=replace(BARE.principal, role=role))
    assert decode_submission(encode_submission(submission)) == submission


@pytest.mark.parametrize("outcome", [ACCEPTED, REFUSED])
def test_an_outcome_arrives_as_it_was_sent(outcome: Outcome) -> None:
    assert decode_outcome(encode_outcome(outcome)) == outcome


@pytest.mark.parametrize("kind", OutcomeKind)
def test_every_kind_of_outcome_can_be_told(kind: OutcomeKind) -> None:
    assert decode_outcome(encode_outcome(Outcome(kind, problem="why"))).kind is kind


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_can_be_told(reason: Reason) -> None:
    refused = Outcome(OutcomeKind.REFUSED, refusal=RefusalTold(reason, {}, ()))
    assert decode_outcome(encode_outcome(refused)) == refused


@pytest.mark.parametrize("cut", [0, 1, 4, 11, 12, 13, 17])
def test_frames_are_whole_however_they_arrive(cut: int) -> None:
    sent = frame(1, b"first") + frame((1 << 64) - 1, b"") + frame(3, b"third")
    buffer = bytearray(sent[:cut])
    arrived = split(buffer)
    buffer += sent[cut:]
    arrived += split(buffer)
    assert arrived == [(1, b"first"), ((1 << 64) - 1, b""), (3, b"third")]
    assert not buffer


def test_what_is_not_whole_waits() -> None:
    buffer = bytearray(frame(1, b"first")[:-1])
    assert split(buffer) == []
    assert bytes(buffer) == frame(1, b"first")[:-1]


def test_the_longest_frame_is_taken_and_a_longer_one_is_refused_by_its_length_alone() -> None:
    assert split(bytearray(frame(1, bytes(FRAME_BYTES_MAX)))) == [(1, bytes(FRAME_BYTES_MAX))]
    with pytest.raises(Malformed, match="the most is"):
        split(bytearray(HEADER.pack(FRAME_BYTES_MAX + 1, 1)))


def test_a_payload_that_is_cut_is_refused() -> None:
    submission, outcome = encode_submission(SUBMISSION), encode_outcome(REFUSED)
    for length in range(len(submission)):
        with pytest.raises(Malformed):
            decode_submission(submission[:length])
    for length in range(len(outcome)):
        with pytest.raises(Malformed):
            decode_outcome(outcome[:length])


@pytest.mark.parametrize("known", ["tenant", "operator"])
def test_a_role_of_another_release_is_nonsense_and_no_crash(known: str) -> None:
    submission = replace(BARE, principal=replace(BARE.principal, role=Role(known)))
    payload = encode_submission(submission).replace(known.encode(), b"x" * len(known))
    with pytest.raises(Malformed, match="is not a valid Role"):
        decode_submission(payload)


def test_a_kind_of_another_release_is_nonsense_and_no_crash() -> None:
    payload = encode_outcome(ACCEPTED).replace(b"accepted", b"xccepted")
    with pytest.raises(Malformed, match="is not a valid OutcomeKind"):
        decode_outcome(payload)


def test_bytes_behind_a_payload_are_refused() -> None:
    with pytest.raises(Malformed, match="1 bytes too many"):
        decode_submission(encode_submission(SUBMISSION) + b"\0")
    with pytest.raises(Malformed, match="1 bytes too many"):
        decode_outcome(encode_outcome(REFUSED) + b"\0")


def test_an_outcome_of_very_many_facts_still_fits_into_a_frame() -> None:
    facts = tuple(replace(FACT, seq=seq, body=bytes(60 << 10)) for seq in range(1, 101))
    told = Outcome(OutcomeKind.ACCEPTED, "0" * 32, 1, 100, facts)
    assert decode_outcome(encode_outcome(told)) == replace(told, facts=())
