"""Macros of texts, and which of them may hide a declaration."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

_DEFINITION = re.compile(r"(?P<name>[A-Za-z_$][\w$]*)(?P<parameters>\([^)]*\))?(?P<body>.*)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_PLAIN = re.compile(r"[\w$\s.]*")
MOST_WORDS = 8
"""Number of words up to which a macro is read as these words."""


@dataclass(slots=True)
class _Macro:
    has_parameters: bool = False
    bodies: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)


class Macros:
    """The macros of a job's texts, all definitions of each."""

    def __init__(self, definitions: Iterable[str], declaring: Set[str], telling: Set[str]) -> None:
        """Args:
        definitions: what stands behind each `#define`, comments left out.
        declaring: words that make a declaration one of a variable that outlives a call.
        telling: words of declarations that have a meaning of their own.
        """
        self._macros: dict[str, _Macro] = {}
        for text in definitions:
            found = _DEFINITION.match(text.strip())
            if found is not None:
                macro = self._macros.setdefault(found["name"], _Macro())
                macro.has_parameters |= found["parameters"] is not None
                macro.bodies.add(found["body"].strip())
        for macro in self._macros.values():
            macro.words = {word for body in macro.bodies for word in _WORD.findall(body)}
        self._telling = self._users(telling)
        self.declaring = self._users(declaring)
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
            is_few = len(macro.bodies) == 1 and len(words) <= MOST_WORDS and self._is_plain(macro)
            if is_few and not macro.words & self._macros.keys():
                found[name] = words
        return found

    def is_opaque(self, name: str) -> bool:
        """Whether a word is a macro that may be more than a name or a number."""
        macro = self._macros.get(name)
        return macro is not None and (name in self._telling or not self._is_plain(macro))

    def reached(self, names: Iterable[str]) -> tuple[set[str], bool]:
        """All words in the definitions of these macros and of those that they use, and whether one of them
        makes names of parts."""
        waiting = [name for name in names if name in self._macros]
        seen, words, pastes = set(waiting), set[str](), False
        while waiting:
            macro = self._macros[waiting.pop()]
            words |= macro.words
            pastes = pastes or any("##" in body for body in macro.bodies)
            for word in macro.words:
                if word in self._macros and word not in seen:
                    seen.add(word)
                    waiting.append(word)
        return words, pastes

    @staticmethod
    def _is_plain(macro: _Macro) -> bool:
        return not macro.has_parameters and all(_PLAIN.fullmatch(body) for body in macro.bodies)

    def _users(self, words: Set[str]) -> set[str]:
        """Macros that use one of the words, perhaps by way of other macros."""
        users: dict[str, list[str]] = {}
        for name, macro in self._macros.items():
            for word in macro.words:
                users.setdefault(word, []).append(name)
        waiting, found = list(words), set[str]()
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in found:
                    found.add(user)
                    waiting.append(user)
        return found
