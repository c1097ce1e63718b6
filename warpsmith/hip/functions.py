"""Functions of a source, and whether their threads meet at a barrier."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warpsmith.hip.source_words import Refusal, SourceWords

_BARRIER = re.compile(r"\b__syncthreads\w* \(|(?:\.|::) sync \(")
_SHARES = re.compile(r"\b__shared__ (?!.*TempStorage)")


@dataclass(frozen=True)
class Function:
    """A function of a source, its words with one space behind each."""

    name: str
    parameters: str
    body: str
    words: SourceWords
    start: int
    """Offset of its name."""
    is_kernel: bool = False


def functions_of(words: SourceWords) -> Iterator[Function]:
    """The functions of a file with their bodies, in order."""
    spaced = [f"{t.text} " for t in words.items]
    at = 0
    while at < len(words.items):
        if words.items[at].text == "{":
            head = at - 1
            if words.word(head) == ")":
                depth = 0
                for n in range(head, -1, -1):
                    depth += (words.word(n) == ")") - (words.word(n) == "(")
                    if depth == 0:
                        break
                end = words.closing(at)
                parameters, body = "".join(spaced[n + 1 : head]), "".join(spaced[at + 1 : end])
                before = next((k for k in range(n - 1, -1, -1) if words.word(k) in (";", "}", "{")), -1)
                is_kernel = any(t.text == "__global__" for t in words.items[before + 1 : n])
                start = words.items[max(0, n - 1)].start
                yield Function(words.word(n - 1), parameters, body, words, start, is_kernel)
                at = end
        at += 1


def without_barriers(sources: Iterable[SourceWords]) -> Iterator[Refusal]:
    """Functions that declare shared memory and whose threads never wait for each other."""
    known = [f for words in sources for f in functions_of(words)]
    meeting = {f.name for f in known if _BARRIER.search(f.body)}
    for function in known:
        called = meeting & set(re.findall(r"\w+", function.body))
        if _SHARES.search(function.body) and not called and function.name not in meeting:
            reason = "shared memory without a barrier counts on threads of a warp that run in step"
            yield function.words.refusal(function.start, function.name, reason)
