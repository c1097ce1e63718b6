"""Types that a project's files declare: whether a job can pass one by value, and why not."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith.rewrite.reader.declarations.file_declarations import Declaration, declarations
from warpsmith.rewrite.reader.declarations.type_words import element_type
from warpsmith.rewrite.source.syntax_tree import split_arguments

_STRUCT = re.compile(
    r"\b(struct|class|union)\b\s*(?:\w+\([^()]*(?:\([^()]*\)[^()]*)*\)\s*)*(\w*)[^:;{(]*(?::(?!:)(.*))?$",
    re.S,
)
_ALIAS = re.compile(r"^using\s+(\w+)\s*=\s*(.+?);?$|^typedef\s+(.+?)\s+(\w+);?$", re.S)
_ENUM = re.compile(r"^(?:typedef\s+)?enum\b(?:\s+(?:class|struct))?\s*(\w*)")
_NO_MEMBER = re.compile(r"^(?:using|typedef|static|friend|template|enum|public|private|protected|#)\b")
_WORDS = re.compile(
    r"\b(?:__restrict__|__restrict|restrict|const|volatile|typename|struct|class|enum|union|mutable|__grid_constant__|constexpr)\b"
)

HOST_MADE = {
    "CUtensorMap": "a tensor map (TMA), which the driver encodes",
    "LoomTensorMap": "a tensor map (TMA), which the driver encodes",
    "TmaDescriptor": "a tensor map (TMA), which the driver encodes",
    "cudaTextureObject_t": "a texture",
    "cudaSurfaceObject_t": "a surface",
    "ncclWindow_t": "a handle of NCCL's",
    "ncclDevComm": "a handle of NCCL's",
    "curandStateMtgp32": "a state of cuRAND's",
}
"""Types whose values only a library can make, with what they are."""
PLAIN = frozenset(
    """
    dim3 half half2 __half __half2 nv_bfloat16 nv_bfloat162 __nv_bfloat16 __nv_bfloat162 size_t ssize_t
    ptrdiff_t uintptr_t intptr_t clock_t cudaStream_t __nv_fp8_e4m3 __nv_fp8_e5m2 __nv_fp8x4_e4m3
    __nv_fp4_e2m1 __nv_fp8_e8m0 ScalarType opmath_type bool_constant integral_constant true_type false_type
    long2 ulonglong2 longlong2 uint32x4 uchar4 char4
    """.split()  # noqa: SIM905  a list of 35 strings would be a page
)
"""Types of CUDA and of C that are a number or a few."""
OPEN = re.compile(
    r"^(?:PackedTensorAccessor(?:32|64)?|GenericPackedTensorAccessor|PhiloxCudaState|FastDivmod\w*|fast_mod_div"
    r"|FastModDiv\w*|Array|array|complex|aligned_array|AlignedArray|TensorInfo|OffsetCalculator)$"
)
"""Library types of numbers and addresses alone, whose layout is public: a job lists their members."""


@dataclass
class TypeIndex:
    """Types of one project by their last name."""

    structs: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Bases and body of each declaration of a name."""
    aliases: dict[str, list[str]] = field(default_factory=dict)
    enums: set[str] = field(default_factory=set)
    macros: dict[str, str] = field(default_factory=dict)
    """Macros without arguments; some stand for a kernel's whole list of arguments."""
    _judged: dict[str, str] = field(default_factory=dict)
    """Answers for structs and aliases by name; one that is being looked for counts as none meanwhile."""

    @staticmethod
    def of(files: Iterable[Path]) -> "TypeIndex":
        """The types in these files."""
        index = TypeIndex()
        for path in files:
            index.add(path.read_text(errors="replace"))
        return index

    def add(self, text: str) -> None:
        """Add the types of a source, nested ones included."""
        for declared in declarations(text):
            self._add(declared)

    def _add(self, declared: Declaration) -> None:
        header = _bare(declared.header)
        if (macro := re.match(r"#define (\w+) (.+)", declared.header, re.S)) is not None:
            self.macros.setdefault(macro.group(1), macro.group(2))
            return
        alias = _ALIAS.match(header if declared.text.rstrip().endswith("}") else _bare(declared.text))
        enum = _ENUM.match(header)
        struct = _STRUCT.search(header)
        opening = declared.text.find("{", len(declared.header.split("{", 1)[0]) // 2)
        if enum is not None:
            self.enums.update(n for n in (enum.group(1), _after_body(declared.text)) if n)
        elif struct is not None and opening >= 0:
            body = declared.text[opening + 1 : declared.text.rfind("}")]
            for name in {struct.group(2), _after_body(declared.text)} - {""}:
                self.structs.setdefault(name, []).append((struct.group(3) or "", body))
            self.add(body)
        elif alias is not None:
            name = alias.group(1) or alias.group(4)
            self.aliases.setdefault(name, []).append(alias.group(2) or alias.group(3))

    def why_not(self, kind: str, own: frozenset[str]) -> str:
        """Why a value of a type cannot be passed; empty if it can.

        Args:
            kind: the type as written.
            own: template parameters in scope, which an instance chooses.
        """
        plain = _WORDS.sub("", kind).strip()
        if "&" in plain:
            return "a reference"
        if re.search(r"\(\s*\*|\bfunction\s*<", plain):
            return "a function's address"
        if plain.endswith(("*", "]")):
            return ""
        outer = re.sub(r"<.*>", "", plain, flags=re.S).strip()
        last = outer.split("::")[-1].strip().rstrip(".")
        if last in HOST_MADE:
            return HOST_MADE[last]
        if _known(plain, last) or last in own or last in self.enums:
            return ""
        if outer.startswith(("std::tuple", "std::vector", "std::string", "std::optional", "std::function")):
            return f"a type of the host's library: {last}"
        if "::" in outer and outer.split("::")[0].strip() in own:
            made = last.endswith(("Params", "Arguments"))
            return f"a struct that host code of a template argument makes: {_shown(plain)}" if made else ""
        if last in self.macros:
            kinds = (re.sub(r"\w+$", "", a.strip()) for a in split_arguments(self.macros[last]))
            return next((why for kind in kinds if (why := self.why_not(kind, own))), "")
        if last in self.structs or last in self.aliases:
            if last not in self._judged:
                self._judged[last] = ""
                self._judged[last] = self._named(last, own)
            return self._judged[last]
        return f"a type of a library: {_shown(outer)}"

    def _named(self, name: str, own: frozenset[str]) -> str:
        """Why no declaration of a name can be passed; empty if one can."""
        found = [self._struct(bases, body, own) for bases, body in self.structs.get(name, ())]
        found += [self.why_not(a, own) for a in self.aliases.get(name, ()) if _last(a) != name]
        return "" if "" in found or not found else found[0]

    def _struct(self, bases: str, body: str, own: frozenset[str]) -> str:
        for base in split_arguments(bases):
            name = re.sub(r"\b(?:public|private|protected|virtual)\b", "", base).strip()
            if name and (why := self.why_not(name, own | _parameters(body))):
                return why
        for kind in members(body):
            if why := self.why_not(kind, own | _parameters(body)):
                return why
        return ""


def members(body: str) -> Iterator[str]:
    """Types of the data members in a struct's body."""
    for declared in declarations(re.sub(r"\b(?:public|private|protected)\s*:", " ", body)):
        text = _bare(declared.header)
        if _NO_MEMBER.match(text) or not text or text.startswith(",") or re.search(r"\bstatic\b", text):
            continue
        text = re.split(r"=|\{", text)[0].strip()
        if re.search(r"\(\s*\*\s*\w+\s*\)", text):
            yield text
        if "(" in text or "operator" in text or _STRUCT.fullmatch(text):
            continue
        found = re.match(r"(.+?[\s*&>])(\w+)\s*((?:\[[^\]]*\]\s*)*)(?::\s*\w+)?\s*(?:,.*)?;?$", text, re.S)
        if found is not None:
            yield found.group(1).strip()


def _known(kind: str, last: str) -> bool:
    dtype, _ = element_type(kind, {})
    return (
        dtype is not None
        or element_type(last, {})[0] is not None
        or last in PLAIN
        or OPEN.match(last) is not None
    )


def _bare(text: str) -> str:
    """Without comments, template heads and attributes."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"\b(?:alignas|__align__|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)|\[\[.*?\]\]", " ", text)
    while (head := re.match(r"\s*template\s*<", text)) is not None:
        depth = 0
        for at in range(head.end() - 1, len(text)):
            depth += (text[at] == "<") - (text[at] == ">")
            if depth == 0:
                break
        text = text[at + 1 :]
    return text.strip()


def _after_body(text: str) -> str:
    found = re.search(r"\}\s*(\w+)\s*;\s*$", text)
    return found.group(1) if found else ""


def _last(kind: str) -> str:
    return re.sub(r"<.*>", "", kind, flags=re.S).split("::")[-1].strip()


def _shown(kind: str) -> str:
    return " ".join(kind.split())[:80]


def _parameters(text: str) -> frozenset[str]:
    """Names of template parameters that a text mentions in a head of its own."""
    return frozenset(re.findall(r"\b(?:typename|class)\s+(\w+)", text))
