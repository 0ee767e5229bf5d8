"""A disk of a few kilobytes for one process: a tmpfs in its own mount namespace, removed with the process."""

import ctypes
import os

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18


def mount(directory: str, size: int) -> None:
    """Mount a disk of `size` bytes for this process alone, which must have one thread. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(result: int, what: str) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{what}: {os.strerror(number)}")

    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWNS) != 0:  # not as root: a namespace in which this user is
        call(libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    call(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mount")
    os.makedirs(directory, exist_ok=True)
    options = f"size={size}".encode()
    call(libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", ctypes.c_ulong(0), options), "mount")
