import pytest

from kvlab import BlockManager, Mismatch, PagedKVCache, SentinelWriter
from kvlab.views import SentinelAudit
from kvlab.views.audit_findings import content, gather
from kvlab.views.pool_layout import PoolLayout

from .reading import ringed, starts, words


def written(script="AABABABBAA"):
    cache = PagedKVCache(2, 8, 4, 2, 16)
    manager, writer = BlockManager(8, 4), SentinelWriter(cache)
    for rid in script:
        position = manager.length(rid) if rid in manager.request_ids() else 0
        writer.write(rid, position, manager.append_slot(rid))
    return cache, manager, writer


def test_a_clean_audit_says_so():
    cache, manager, writer = written()
    figure = SentinelAudit(cache, manager, writer)
    assert figure.words() == "Every token's K and V is where its block table says."
    assert ringed(figure.static(), PoolLayout(8, 4, 0, lanes=True)) == set()


def test_each_wrong_slot_is_marked_told_and_stepped_to():
    cache, manager, writer = written()
    cache.k[0, 1, 1] = cache.k[0, 0, 0]  # B[1] now holds A[0], layer 0, both heads
    cache.v[1, 0, 2, 1] = 0
    mismatches = writer.audit(manager)
    figure = SentinelAudit(cache, manager, mismatches)
    layout = PoolLayout(8, 4, 0, lanes=True)
    assert figure.words() == "3 wrong records in 2 slots. Next shows them one by one."
    assert ringed(figure.static(), layout, focus="var(--kv-ink)") == {(0, 2), (1, 1)}
    figure.buttons[2].click()
    assert str(mismatches[0]) in figure.telling.value and ringed(figure.static(), layout) == {(0, 2)}
    figure.buttons[2].click()
    text = words(figure.static())
    assert "B[1]" in text and "A[0]" in text and any("and 1 more record" in line for line in text)
    assert ringed(figure.static(), layout) == {(1, 1)}
    # two crossed records: layer 0, heads 0 and 1, K
    crosses = [
        data for _, _, data in starts(figure.static(), stroke="var(--kv-focus)") if "m0-6l" in data + "m0-6l"
    ]
    assert sum(data.endswith("l6 6m0-6l-6 6") for data in crosses) == 2


def test_a_table_that_leads_nowhere_is_told():
    cache, _, writer = written("AAAAA")

    class Short:
        num_blocks, block_size = 8, 4

        def block_table(self, request_id):
            return [0]

        def length(self, request_id):
            return 5

        def free_order(self):
            return [1, 2, 3, 4, 5, 6, 7]

    figure = SentinelAudit(cache, Short(), writer, step=1)
    assert "has no slot" in figure.words() and "has no slot" in " ".join(words(figure.static()))


def test_mismatches_of_one_token_are_one_finding():
    def mismatch(head, kind, position):
        return Mismatch(3, 1, 0, head, kind, "A", position, f"A[{position}]", "B[2]", "other")

    findings = gather([mismatch(0, "K", 9), mismatch(1, "K", 9), mismatch(0, "V", 9), mismatch(0, "K", 13)])
    assert [len(finding.mismatches) for finding in findings] == [3, 1]
    assert findings[0].wrong_records() == {(0, 0, "K"), (0, 1, "K"), (0, 0, "V")}
    assert findings[1].sentence == "block 3 slot 1, layer 0 head 0 K: expected A[13], found B[2]."


@pytest.mark.parametrize(
    ("text", "parts"), [("A[9]", ("A", "9")), ("a b[c][12]", ("a b[c]", "12")), ("nothing", None)]
)
def test_content_is_read_from_its_text(text, parts):
    assert content(text) == parts
