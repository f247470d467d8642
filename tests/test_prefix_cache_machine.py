"""The same random operations with prefix caching on: 2,000 sequences, with and without the null block."""

from hypothesis import settings
from test_block_manager_machine import LruMachine, many


class CachingMachine(LruMachine):
    caching = True


TestCaching = CachingMachine.TestCase
TestCaching.settings = settings(many, max_examples=2000)
