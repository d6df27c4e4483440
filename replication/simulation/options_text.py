"""Format the options of a run as lines.

The lines name every option that determines the run, the seed first, so that a run can be repeated from them.
"""

from __future__ import annotations

from broker.wording import counted
from replication.rules.switches import sound
from replication.simulation.options import Options


def options_lines(options: Options) -> list[str]:
    """Return the options of a run as lines to print, the seed first."""
    settings = options.settings
    network, rules = options.network, options.settings.rules
    return [
        f"seed {options.seed}, {options.name}, {options.duration_ms} ms under faults, "
        f"then up to {options.heal_ms_max} ms to become whole",
        f"{counted(options.brokers, 'broker')} in {counted(options.racks, 'rack')}, "
        f"{counted(options.partitions, 'partition')} of "
        f"{counted(options.replication_factor, 'replica')}, min.insync.replicas {settings.min_isr}, "
        f"unclean election {'on' if settings.unclean_election else 'off'}",
        f"{counted(options.producers, 'producer')}, acks {', '.join(map(str, options.acks))}, "
        f"{'idempotent' if options.is_idempotent else 'not idempotent'}, a write every {options.produce_ms} ms; "
        f"{counted(options.consumers, 'consumer')} a partition",
        f"delay up to {network.delay_ms_max} ms; in a thousand: loss {network.loss}, doubled {network.duplicates}, "
        f"late {network.stragglers}; {'in order' if network.is_ordered else 'in any order'}",
        *(() if options.retention is None else (str(options.retention),)),
        "faults: "
        + (", ".join(f"{kind.name.lower()} every {mean_ms} ms" for kind, mean_ms in options.fault_ms) or "none"),
        *(
            ()
            if rules == sound(rules)
            else ("with open weaknesses of Kafka (scenarios S99, S100), by which invariants may break",)
        ),
        "strict: no broker loses records, as without ELR (KIP-966) acknowledged ones would be lost"
        if options.is_strict and not settings.rules.elr
        else "strict: fewer than min.insync.replicas brokers lose records at one time"
        if options.is_strict
        else "not strict: any number of brokers may lose records at one time"
        + ("" if rules.elr else "; what that breaks without ELR (KIP-966) is no finding"),
    ]
