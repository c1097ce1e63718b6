"""All definitions of the macros of texts that may be written to mislead, and the macros that may hide a
declaration. Nothing is left out: a branch of the preprocessor that is not taken counts too."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from warpsmith.source.macros.macro_expansion import reached

_DEFINITION = re.compile(r"(?P<name>[A-Za-z_$][\w$]*)(?P<parameters>\([^)]*\))?(?P<body>.*)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_PLAIN = re.compile(r"[\w$\s.]*")
_MOST_WORDS = 8
"""Number of words up to which a macro is read as these words."""


@dataclass(slots=True)
class _Definitions:
    has_parameters: bool = False
    bodies: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)

    @property
    def is_plain(self) -> bool:
        return not self.has_parameters and all(_PLAIN.fullmatch(body) for body in self.bodies)


class DeclaringMacros:
    """Macros of a job's texts by what their definitions may declare."""

    def __init__(self, definitions: Iterable[str], declaring: Set[str], telling: Set[str]) -> None:
        """Args:
        definitions: what stands behind each `#define`, comments left out.
        declaring: words that make a declaration one of a variable that outlives a call.
        telling: words of declarations that have a meaning of their own.
        """
        self._macros: dict[str, _Definitions] = {}
        for text in definitions:
            found = _DEFINITION.match(text.strip())
            if found is not None:
                macro = self._macros.setdefault(found["name"], _Definitions())
                macro.has_parameters |= found["parameters"] is not None
                macro.bodies.add(found["body"].strip())
                macro.words.update(_WORD.findall(found["body"]))
        users: dict[str, list[str]] = {}
        for name, macro in self._macros.items():
            for word in macro.words:
                users.setdefault(word, []).append(name)

        def using(words: Set[str]) -> set[str]:
            leading = reached(words, lambda word: users.get(word, ()))
            return {name for word in leading for name in users.get(word, ())}

        self._telling = using(telling)
        self.declaring = using(declaring)
        """Names of macros that may declare such a variable wherever they are used."""

    @property
    def names(self) -> Set[str]:
        """Names of all macros."""
        return self._macros.keys()

    def expansions(self) -> Mapping[str, tuple[str, ...]]:
        """Words of macros that only stand for a few words, such as `static __device__`."""
        found = {}
        for name in self._telling:
            macro = self._macros[name]
            words = tuple(_WORD.findall(next(iter(macro.bodies))))
            is_few = len(macro.bodies) == 1 and len(words) <= _MOST_WORDS and macro.is_plain
            if is_few and not macro.words & self._macros.keys():
                found[name] = words
        return found

    def is_opaque(self, name: str) -> bool:
        """True for a macro that may be more than a name or a number."""
        macro = self._macros.get(name)
        return macro is not None and (name in self._telling or not macro.is_plain)

    def reached(self, names: Iterable[str]) -> tuple[set[str], bool]:
        """All words in the definitions of these macros and of those that they use; the second value is True
        if one of them makes names of parts."""
        own = self._macros.keys()
        macros = [self._macros[n] for n in reached(own & names, lambda name: self._macros[name].words & own)]
        words = set[str]().union(*(macro.words for macro in macros))
        return words, any("##" in body for macro in macros for body in macro.bodies)
