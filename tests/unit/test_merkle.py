"""The tree by the eight leaves that the certificate transparency projects test with."""

import pytest

from domain.consistency import consistency_proof, is_consistent
from domain.merkle import EMPTY_ROOT, Tree, inclusion_proof, is_included, leaf_hash, root_of

# The vectors of google/certificate-transparency's merkletree tests, leaves and roots.
LEAVES = [
    leaf_hash(bytes.fromhex(data))
    for data in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    bytes.fromhex(root)
    for root in (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]


@pytest.mark.parametrize("size", range(9))
def test_the_known_leaves_have_the_known_roots(size: int) -> None:
    assert root_of(LEAVES[:size]) == ROOTS[size]
    assert Tree().grown(LEAVES[:size])[0].root == ROOTS[size]


def test_the_empty_tree_is_the_hash_of_no_bytes() -> None:
    assert Tree().root == EMPTY_ROOT == ROOTS[0]


@pytest.mark.parametrize(
    ("index", "size", "path"),
    [
        (0, 1, []),
        (
            0,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            5,
            8,
            [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            1,
            5,
            [
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ],
)
def test_the_known_audit_paths_are_made_and_believed(
    index: int, size: int, path: list[str]
) -> None:
    proof = inclusion_proof(index, LEAVES[:size])
    assert [digest.hex() for digest in proof] == path
    assert is_included(LEAVES[index], index, size, proof, ROOTS[size])


@pytest.mark.parametrize(
    ("earlier", "later", "path"),
    [
        (1, 1, []),
        (
            1,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            [
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ],
)
def test_the_known_consistency_proofs_are_made_and_believed(
    earlier: int, later: int, path: list[str]
) -> None:
    proof = consistency_proof(earlier, LEAVES[:later])
    assert [digest.hex() for digest in proof] == path
    assert is_consistent(earlier, ROOTS[earlier], later, ROOTS[later], proof)


@pytest.mark.parametrize("earlier", [-1, 9])
def test_a_size_that_never_was_has_no_proof(earlier: int) -> None:
    with pytest.raises(ValueError, match="never had"):
        consistency_proof(earlier, LEAVES)
    assert not is_consistent(earlier, ROOTS[0], 8, ROOTS[8], [])


def test_a_log_that_lost_its_tail_is_not_consistent() -> None:
    assert not is_consistent(8, ROOTS[8], 7, ROOTS[7], [])


def test_nothing_but_the_empty_root_stands_for_nothing() -> None:
    assert is_consistent(0, ROOTS[0], 8, ROOTS[8], [])
    assert not is_consistent(0, ROOTS[1], 8, ROOTS[8], [])
