"""Archives whose bytes depend on nothing but what is in them."""

import gzip
import io
import tarfile

from .common import COMPRESSION, epoch

EXECUTABLE = 0o755
PLAIN = 0o644


def tar_gz(files):
    """A tar.gz of `files`: paths, each with its bytes and its mode."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, (data, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(data), mode, epoch()
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), compresslevel=COMPRESSION, mtime=epoch())
