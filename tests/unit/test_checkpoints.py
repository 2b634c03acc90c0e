"""Checkpoints, notes and proofs: what is signed, what is shown, and what is seen through."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.keys.signing import Signer, verified
from domain.checkpoint import BadNote, Checkpoint, VerifierKey, checkpoint_of, verifier_key_of
from domain.consistency import consistency_proof, is_consistent
from domain.merkle import FullTile, Tree, inclusion_proof, is_included, leaf_hash, root_of
from domain.proofs import NoSuchSize, Row, consistency, inclusion, row_of, subtree

SIGNER = Signer.of("ledger.example/shard/0", b"s" * 32)
SIZES = (1, 2, 3, 7, 255, 256, 257, 300, 511, 512, 65_536 + 300)


def grown(size: int) -> tuple[list[bytes], Tree, Row]:
    leaves = [leaf_hash(number.to_bytes(8, "big")) for number in range(size)]
    tree, tiles = Tree().grown(leaves)
    known: dict[tuple[int, int], FullTile] = {(t.level, t.index): t for t in tiles}
    return leaves, tree, row_of(tree, lambda level, index: known[level, index].hashes)


@pytest.mark.parametrize("size", SIZES)
def test_proofs_from_tiles_are_those_of_the_definition(size: int) -> None:
    leaves, tree, row = grown(size)
    assert subtree(row, 0, size) == tree.root
    places = sorted({0, 1, size // 3, size // 2, size - 2, size - 1} & set(range(size)))
    for index in places:
        path = inclusion(row, index, size)
        assert is_included(leaves[index], index, size, path, tree.root)
        if size < 1_000:
            assert path == inclusion_proof(index, leaves)
    for earlier in sorted({1, size // 2, size - 1, size} - {0}):
        proof = consistency(row, earlier, size)
        before = subtree(row, 0, earlier)
        assert is_consistent(earlier, before, size, tree.root, proof)
        if size < 1_000:
            assert proof == consistency_proof(earlier, leaves)
            assert before == root_of(leaves[:earlier])


@given(st.integers(1, 700), st.data())
def test_any_size_that_the_log_had_can_be_proven_from_what_it_has_now(
    size: int, data: st.DataObject
) -> None:
    leaves, _, row = grown(size)
    then = data.draw(st.integers(1, size))
    index = data.draw(st.integers(0, then - 1))
    earlier = data.draw(st.integers(0, then))
    assert inclusion(row, index, then) == inclusion_proof(index, leaves[:then])
    assert consistency(row, earlier, then) == consistency_proof(earlier, leaves[:then])


def test_sizes_that_never_were_have_no_proof() -> None:
    _, _, row = grown(5)
    with pytest.raises(NoSuchSize, match="never had 6"):
        consistency(row, 6, 5)
    with pytest.raises(NoSuchSize, match="none at index 5"):
        inclusion(row, 5, 5)


def test_a_signed_checkpoint_is_read_back_by_its_key_alone() -> None:
    signed = SIGNER.sign(3, b"r" * 32)
    key = verifier_key_of(SIGNER.key.text())
    assert verified(signed, key) == Checkpoint("ledger.example/shard/0", 3, b"r" * 32)
    lines = signed.split("\n")
    assert lines[:2] == ["ledger.example/shard/0", "3"]
    assert lines[4].startswith("\N{EM DASH} ledger.example/shard/0 ")


def test_the_key_of_the_published_example_is_read() -> None:
    """The verifier key of the signed-note specification's example, and its key id."""
    text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    key = verifier_key_of(text)
    assert (key.name, key.id.hex(), key.text()) == ("PeterNeumann", "c74f20a3", text)


def test_a_signature_of_somebody_else_is_passed_over() -> None:
    signed = SIGNER.sign(3, b"r" * 32)
    other = base64.b64encode(b"\0\1\2\3" + b"x" * 64).decode()
    assert verified(f"{signed}\N{EM DASH} witness {other}\n", SIGNER.key).size == 3


def changed(signed: str) -> dict[str, str]:
    head, tail = signed.split("\n\n")
    return {
        "does not hold": signed.replace("\n3\n", "\n4\n"),
        "bears no signature": signed.replace("ledger.example/shard/0 ", "other "),
        "an empty line": head + "\n",
        "no signature line": f"{head}\n\nhello\n",
        "no base64": f"{head}\n\n{tail[:-4]}!!\n",
        "at most": "x" * 70_000,
    }


@pytest.mark.parametrize("words", list(changed(SIGNER.sign(3, b"r" * 32))))
def test_a_note_that_was_changed_is_none(words: str) -> None:
    with pytest.raises(BadNote, match=words):
        verified(changed(SIGNER.sign(3, b"r" * 32))[words], SIGNER.key)


def test_a_checkpoint_under_another_name_is_none() -> None:
    forged = Signer(VerifierKey("a", SIGNER.key.public), SIGNER._private)
    text = Checkpoint("b", 1, b"r" * 32).text()
    signature = forged._private.sign(text.encode())
    from domain.checkpoint import note

    with pytest.raises(BadNote, match="is of b, the key of a"):
        verified(note(text, forged.key, signature), forged.key)


@pytest.mark.parametrize(
    "text", ["", "o\n", "o\n1\n", "o\n01\nAA==\n", "o\n1\nAA==\n", "o\n-1\n\n"]
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(BadNote):
        checkpoint_of(text)


@pytest.mark.parametrize("text", ["", "a+b", "a+00000000+AQ==", SIGNER.key.text()[:-4] + "AAA="])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(BadNote):
        verifier_key_of(text)


@pytest.mark.parametrize("origin", ["", "two words", "a+b"])
def test_an_origin_that_no_note_may_hold_is_refused(origin: str) -> None:
    with pytest.raises(BadNote):
        Signer.of(origin, b"s" * 32)
