"""What a failed pip run means, in one sentence that says what to do."""

import platform
import re
import sys

# In order: the first that fits wins. A full disk or a foreign file may come with network noise before it.
_CAUSES = (
    (
        r"No space left on device|Errno 28|WinError 112|Disk quota exceeded",
        "The disk is full: free some space (2 GB, or 8 GB where torch brings its CUDA libraries)",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "The package index sent another file than kvlab checks for: wait, or choose another index",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLCertVerificationError",
        "The package index's certificate is not trusted: set PIP_CERT to your network's certificates",
    ),
    (
        r"NewConnectionError|NameResolutionError|name resolution|getaddrinfo failed|Network is unreachable"
        r"|Name or service not known|Connection refused|Connection aborted|timed out|ProxyError|Retrying \(",
        "The package index cannot be reached: connect to the network, or name another in PIP_INDEX_URL",
    ),
    (
        r"Permission denied|Errno 13|WinError 5\b",
        "A file cannot be written: check that this folder is yours and close programs that use .venv",
    ),
)


def sentence(stderr: str, log_text: str, returncode: int, again: str, log: str) -> str:
    """One sentence for a pip run that failed with `returncode`; `again` is the command to repeat.

    `stderr` is asked first, then `log_text`: what pip's own subprocesses say is only in the log, named `log`.
    """
    why = cause(stderr) or cause(_complaints(log_text))
    if why is None and returncode in (-9, 137):
        why = "The install was killed, most likely for want of memory: close other programs"
    if why is None:
        return f"pip could not install kvlab's packages: read {log} for the reason, then run `{again}` again."
    return f"{why}, then run `{again}` again (pip's log: {log})."


def cause(text: str) -> str | None:
    """What went wrong and what to do about it, or None when the text fits nothing known."""
    known = next((says for pattern, says in _CAUSES if re.search(pattern, text)), None)
    return known or _missing_release(text)


def _complaints(log_text: str) -> str:
    return "\n".join(line for line in log_text.splitlines() if "ERROR" in line or "WARNING" in line)


def _missing_release(text: str) -> str | None:
    match = re.search(r"No matching distribution found for ([^\s(;]+)", text)
    if match is None:
        return None
    here = "Python {}.{}".format(*sys.version_info) + f" on {platform.system()} {platform.machine()}"
    todo = "use a 64-bit Python 3.11 to 3.14, or an index that has it"
    return f"The package index has no {match[1]} for {here}: {todo}"
