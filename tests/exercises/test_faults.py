"""Each planted fault of notebook 03 is wrong, and the audit that the notebook draws says so."""

import pytest

from kvlab import BlockManager, PagedKVCache, SentinelWriter
from kvlab.exercises.n03_address_translation.faults import FAULTS, FaultChooser
from kvlab.views import SentinelAudit

SEEN = []


def drive(translate):
    manager, cache = BlockManager(6, 2), PagedKVCache(1, 6, 2, 1, 32)
    writer = SentinelWriter(cache)
    for request in "AABABB":
        manager.append_slot(request)
        position = manager.length(request) - 1
        writer.write(request, position, translate(manager.block_table(request), 2, position))
    SEEN[:] = writer.audit(manager)
    return SentinelAudit(cache, manager, SEEN)


@pytest.mark.parametrize("name", FAULTS)
def test_the_audit_names_wrong_slots(name):
    drive(FAULTS[name].translate)
    assert SEEN


def test_the_right_translation_has_none():
    drive(lambda table, size, position: (table[position // size], position % size))
    assert not SEEN


def test_the_buttons_change_the_picture():
    chooser = FaultChooser(drive)
    first, said = chooser.audit.static(), chooser.said.value
    chooser.buttons.value = "wrong %"
    assert chooser.audit.static() != first and chooser.said.value != said
    assert chooser.children[-1] is chooser.audit
    assert "image/svg+xml" in chooser._repr_mimebundle_()


def test_an_unknown_fault_names_the_others():
    with pytest.raises(ValueError, match=r"wrong //, wrong %, length too early"):
        FaultChooser(drive, "wrong")
