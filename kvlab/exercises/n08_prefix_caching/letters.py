"""One token a character, so that what a block holds can be read."""

from kvlab.views.prompt_tokens import Token


def letters(text: str) -> list[Token]:
    """The text's characters; a space is shown as a mark."""
    return [Token(ord(character), character.replace(" ", "␣")) for character in text]
