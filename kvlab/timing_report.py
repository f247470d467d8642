"""A measured document as a table of text: shares of the read's speed, and ratios between contenders."""

from __future__ import annotations

from kvlab.contenders import CONTIGUOUS, GATHER, PAGED


def heading(document: dict) -> str:
    """Where and when this was measured, in two or three lines."""
    here = document["machine"]
    where = here["device"] if here["device"] != "cpu" else f"{here['processor']} (CPU)"
    versions = ", ".join(f"{name} {number}" for name, number in here["versions"].items() if number)
    lines = [
        f"{where}, {here['system']}, {here['threads']} threads on {here['cores']} cores, "
        f"clock: {document['clock']}",
        f"{document['date']}, seed {document['seed']}, Python {here['python']}, {versions}",
    ]
    if here["load"] and here["load"] > 0.5:
        lines.append(f"Others were working here (load {here['load']}): no reference, only a picture.")
    return "\n".join(lines)


def row_text(row: dict) -> str:
    """One point: its bytes, the limits, then a line for each contender, the fastest first."""
    shape = row["shape"]
    read, copy = row["read_bytes_per_s"], row["copy_bytes_per_s"]
    lines = [
        f"\n{row['sweep']} = {row['value']}: {shape['num_seqs']} x {shape['context']} tokens, "
        f"{shape['num_q_heads']}/{shape['num_kv_heads']} heads, D={shape['head_dim']}, "
        f"B={shape['block_size']}, {shape['dtype']}: {row['must_move'] / 1e6:.1f} MB must move",
        f"  read {speed(read)}   copy {speed(copy)}   {row['rounds']} rounds",
    ]
    for name, figures in sorted(row["contenders"].items(), key=lambda item: item[1]["seconds"][0]):
        lines.append(f"  {name:<22}{contender_text(figures)}")
    return "\n".join(lines + ratios(row))


def contender_text(figures: dict) -> str:
    middle, low, high = figures["seconds"]
    text = f"{1e3 * middle:9.2f} ms ({1e3 * low:.2f} to {1e3 * high:.2f})"
    share, share_low, share_high = figures["share"]
    text += f"   share {share:.2f} ({share_low:.2f} to {share_high:.2f})"
    if figures["first_s"] > max(0.1, 10 * middle):
        text += f"   first call {figures['first_s']:.1f} s"
    if "bytes_copied" in figures:
        copied, peak = figures["bytes_copied"] / 1e6, figures["peak_bytes"] / 1e6
        text += f"\n{'':24}copied {copied:.1f} MB of old tokens, {peak:.1f} MB at the peak"
    return text


def ratios(row: dict) -> list[str]:
    """How many times as fast our path was as the two baselines."""
    times = {name: figures["seconds"][0] for name, figures in row["contenders"].items()}
    lines = []
    for own in (name for name in times if name.startswith(PAGED)):
        against = [
            f"{times[name] / times[own]:.2f} x {name}" for name in (CONTIGUOUS, GATHER) if name in times
        ]
        if against:
            lines.append(f"  {own} is {' and '.join(against)}")
    return lines


def speed(spread: list[float]) -> str:
    middle, low, high = (figure / 1e9 for figure in spread)
    return f"{middle:.2f} GB/s ({low:.2f} to {high:.2f})"


def left_out_text(rows: list[dict]) -> str:
    """Each contender that was left out somewhere, with the reasons."""
    reasons: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, why in row["left_out"].items():
            reasons.setdefault(name, {})[why] = None
    return "\n".join(f"{name} left out: {'; '.join(whys)}." for name, whys in reasons.items())
