"""How a process of root's is anybody but root, for a server that refuses to be root."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NAMESPACE = ("--user", "--map-user=1000", "--map-group=1000")
ENTER = (
    "--inh-caps=-all,+dac_override",
    "--ambient-caps=-all,+dac_override",
    "--bounding-set=-all,+dac_override",
    "--securebits=+no_setuid_fixup",
)
"""The one capability (capabilities(7)) that stays: to pass by the permissions of folders.

The last word makes access(2) respect it too, by which PostgreSQL looks for its programs.
"""
USERS = ("postgres", "nobody")
"""System users that will do, the first that there is."""


class NoOtherUser(Exception):
    """Nobody else can be had; the words say what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a command runs as, and who must own its files."""

    prefix: tuple[str, ...]
    uid: int
    gid: int

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that runs these words as this identity, in the same process."""
        return [*self.prefix, *words]

    def reaches(self, path: Path) -> bool:
        """Whether a folder can be entered."""
        return _succeeds(self.command(["test", "-x", str(path)]))

    def own(self, path: Path) -> None:
        """Make a file or a folder with all that is in it this identity's own."""
        if path.stat().st_uid == self.uid:
            return
        for each in (path, *path.rglob("*")):
            os.chown(each, self.uid, self.gid, follow_symlinks=False)


def identity() -> Identity:
    """The best that there is. Raises `NoOtherUser`.

    An ordinary user stays who they are. Root enters a user namespace of its own, in which no
    system user is needed and no file changes its owner; where the kernel or a container forbids
    that, a system user has to do, to whom the data are given.
    """
    if os.geteuid() != 0:
        return Identity((), os.geteuid(), os.getegid())
    return in_namespace() or as_system_user()


def in_namespace() -> Identity | None:
    """Root in a user namespace of its own, if that is allowed here."""
    unshare = shutil.which("unshare")
    if unshare is None or not _succeeds([unshare, *NAMESPACE, "true"]):
        return None
    return Identity((unshare, *NAMESPACE), os.geteuid(), os.getegid())


def as_system_user() -> Identity:
    """A system user with no right but to enter root's private folders. Raises `NoOtherUser`.

    That right is what the other ways have too; so no permission of a parent folder is touched.
    """
    setpriv = shutil.which("setpriv")
    for name in USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        if setpriv is not None:
            words = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
            return Identity((setpriv, *words, *ENTER), user.pw_uid, user.pw_gid)
    raise NoOtherUser(
        "PostgreSQL does not run as root, and neither unshare(1) nor setpriv(1) can make it "
        "somebody else here; run as an ordinary user, or name a server with --dsn"
    )


def _succeeds(command: Sequence[str]) -> bool:
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own words
    return done.returncode == 0
