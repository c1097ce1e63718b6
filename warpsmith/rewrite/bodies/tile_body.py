"""The body of a kernel with a tile of elements per thread."""

from dataclasses import dataclass

from warpsmith.rewrite.analysis.draft import Draft
from warpsmith.rewrite.analysis.indices.guarded_element import Element, Place, reached
from warpsmith.rewrite.analysis.language_words import Words, text_of
from warpsmith.rewrite.analysis.loops.live_variables import Split
from warpsmith.rewrite.analysis.values.uniform_values import uniform_text
from warpsmith.rewrite.bodies.staged_operands import STAGE, Staged, clamped, fill, local_arrays, staged_body
from warpsmith.rewrite.source.syntax_tree import Variable

TILE = {"x": "WS_TILE_X", "y": "WS_TILE_Y"}
SPREAD = "WS_SPREAD"
_COUNTER = {"x": "ws_c", "y": "ws_r"}


@dataclass(frozen=True)
class TileText:
    """Writes the body. In `whole` paths every element is within bounds, so nothing is clamped."""

    draft: Draft
    element: Element
    split: Split
    axes: tuple[str, ...]
    stages: tuple[Staged, ...]

    @property
    def words(self) -> Words:
        """The dialect."""
        return Words(self.draft.is_opencl)

    def body(self) -> str:
        """The statements between the kernel's braces."""
        element = self.element
        lines = []
        if self.stages:
            lines += [f"#if {STAGE} > 0", *local_arrays(self.words, self.stages), "#endif"]
        lines += [line for p in element.places for line in self._range(p)]
        inside = " && ".join(f"ws_last_{p.axis} < {h}" for p in element.places for h in p.highs)
        above = " && ".join(f"ws_first_{p.axis} >= {low}" for p in element.places for low in p.lows)
        whole = " && ".join(c for c in (inside, above) if c) or "1"
        uniform = " && ".join(element.uniform) or "1"
        some = " && ".join(reached(element.places)) or "1"
        plain = [f"if ({uniform}) {{", f"if ({whole}) {{", *self._phases(whole=True, stage=False), "}"]
        if whole != "1":
            plain += [f"else if ({some}) {{", *self._phases(whole=False, stage=False), "}"]
        plain.append("}")
        if not self.stages:
            return "\n".join([*lines, *plain])
        deep = [f"if ({uniform} && {some}) {{", *self._phases(whole=False, stage=True), "}"]
        return "\n".join([*lines, f"#if {STAGE} > 0", *deep, "#else", *plain, "#endif"])

    def _range(self, p: Place) -> list[str]:
        tile = TILE[p.axis] if p.axis in self.axes else "1"
        words = self.words
        return [
            f"const {p.kind} ws_first_{p.axis} = {words.block(p.axis)} * {words.threads(p.axis)} * {tile}"
            f"{p.offset};",
            f"const {p.kind} ws_last_{p.axis} = ws_first_{p.axis} + {words.threads(p.axis)} * {tile} - 1;",
        ]

    def _index(self, p: Place) -> list[str]:
        words, name = self.words, f"ws_own_{p.axis}"
        if p.axis not in self.axes:
            return [f"const {p.kind} {name} = ws_first_{p.axis} + {words.thread(p.axis)};"]
        count = _COUNTER[p.axis]
        near = f"ws_first_{p.axis} + {words.thread(p.axis)} * {TILE[p.axis]} + {count}"
        if p.axis != "x":
            return [f"const {p.kind} {name} = {near};"]
        far = f"ws_first_{p.axis} + {count} * {words.threads(p.axis)} + {words.thread(p.axis)}"
        return [f"const {p.kind} {name} = {SPREAD} ? {far} : {near};"]

    def _places(self, *, whole: bool, fresh: bool) -> list[str]:
        lines = []
        for p in self.element.places:
            index = self._index(p)
            if fresh:
                seen = index[0].replace(f"const {p.kind} ws_own_", f"{self.words.fresh}{p.kind} ws_seen_", 1)
                index = [seen, f"const {p.kind} ws_own_{p.axis} = ws_seen_{p.axis};"]
            lines += index
            text = clamped(p, f"ws_own_{p.axis}", whole=whole)
            lines.append(f"const {p.kind} ws_at_{p.axis} = {text};")
        return lines

    def _inside(self, *, whole: bool) -> str:
        bounded = [p for p in self.element.places if p.highs or p.lows]
        if whole or not bounded:
            return ""
        return "if (" + " && ".join(f"ws_own_{p.axis} == ws_at_{p.axis}" for p in bounded) + ") "

    def _each(self, lines: list[str], *, whole: bool, unroll: bool, fresh: bool) -> list[str]:
        """The lines for every element of the tile."""
        head = []
        for axis in reversed(self.axes):
            count = _COUNTER[axis]
            head += ["#pragma unroll"] if unroll else []
            head.append(f"for (int {count} = 0; {count} < {TILE[axis]}; ++{count}) {{")
        setup = self.element.setup_text(self.draft.facts)
        return [*head, *self._places(whole=whole, fresh=fresh), *setup, *lines, "}" * len(self.axes)]

    @property
    def _slot(self) -> str:
        if len(self.axes) == 1:
            return _COUNTER[self.axes[0]]
        return f"ws_r * {TILE['x']} + ws_c"

    def _save(self, v: Variable) -> str:
        return f"ws_keep_{v.name}[{self._slot}] = {v.name};"

    def _load(self, v: Variable) -> str:
        kind = "" if v.name in self.split.outer else f"{v.type_text} "
        return f"{kind}{v.name} = ws_keep_{v.name}[{self._slot}];"

    def _phases(self, *, whole: bool, stage: bool) -> list[str]:
        facts, split, source = self.draft.facts, self.split, self.draft.source
        size = " * ".join(TILE[a] for a in self.axes)
        arrays = [f"{v.type_text} ws_keep_{v.name}[{size}];" for v in split.kept]
        before = [text_of(source, s) for s in split.before]
        save = [self._save(v) for v in split.kept]
        inside = self._inside(whole=whole)
        blank = [f"ws_keep_{v.name}[{self._slot}] = {self.words.zero(v.type_text)};" for v in split.kept]
        first = [f"{inside}{{", *before, *save, "}"]
        first += ["else {", *blank, "}"] if inside else []
        load = [self._load(v) for v in split.kept]
        last = [f"{inside}{{", *split.again, *self._counter_again(), *load]
        last += [*(text_of(source, s) for s in split.after), "}"]
        loop = split.loop
        kind, sign = loop.variable.type_text, loop.sign
        start, bound = uniform_text(facts, loop.start), uniform_text(facts, loop.bound)
        middle = [*split.again, self._counter(), *load, "%BODY%", *save]
        unroll = whole or stage
        each = self._each(middle, whole=whole, unroll=unroll, fresh=False)
        plain = [f"for ({kind} ws_k = {start}; ws_k {sign} ({bound}); ++ws_k) {{", *each, "}"]
        plain = _with(plain, source.of(loop.body))
        if stage:
            plain = [
                f"for ({kind} ws_k0 = {start}; ws_k0 {sign} ({bound}); ws_k0 += {STAGE}) {{",
                *fill(self.draft, self.split, self.stages, whole=whole),
                self.words.barrier,
                f"for ({kind} ws_k = ws_k0; ws_k < ws_k0 + {STAGE} && ws_k {sign} ({bound}); ++ws_k) {{",
                *_with(each, staged_body(self.draft, self.split, self.stages)),
                "}",
                self.words.barrier,
                "}",
            ]
        return [
            *arrays,
            *self._each(first, whole=whole, unroll=unroll, fresh=stage),
            *plain,
            *self._each(last, whole=whole, unroll=unroll, fresh=stage),
        ]

    def _counter(self) -> str:
        v = self.split.loop.variable
        outside = any(v.declaration == s for s in self.element.setup)
        return f"{v.name} = ws_k;" if outside else f"{v.type_text} {v.name} = ws_k;"

    def _counter_again(self) -> list[str]:
        v = self.split.loop.variable
        declared = any(v.declaration == s for s in self.split.before)
        return [f"{v.type_text} {v.name};"] if declared else []


def _with(lines: list[str], body: str) -> list[str]:
    return [body if line == "%BODY%" else line for line in lines]
