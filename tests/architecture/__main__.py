"""`python -m tests.architecture`: write the snapshot of the public surface anew."""

from __future__ import annotations

from tests.architecture.public_api import write

if __name__ == "__main__":
    print(f"written: {write().name}")
