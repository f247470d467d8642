"""Draw the README's picture: `python tools/draw_readme.py` (a test keeps it up to date)."""

from pathlib import Path

from kvlab.views import AddressTranslation

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "address-translation.svg"


def draw() -> str:
    """Request A's token 6: through the block table [7, 1] to block 1, slot 2."""
    figure = AddressTranslation(table=[7, 1], block_size=4, length=7)
    figure.go(6)
    return figure.static()


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"wrote {PICTURE}")
