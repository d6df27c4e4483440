"""List mutants that change nothing that could be observed, each with the reason.

What it decides: which survivors of a mutation run are no gap. The name is `Mutant.name`: a mutant of other text is
another mutant, and has to be looked at again.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EQUIVALENT: Final[Mapping[str, str]] = MappingProxyType({})
