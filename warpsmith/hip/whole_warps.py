"""Exchanges over whole warps whose width is `warpSize`: known forms of reductions, and nothing else.

What a reduction leaves in a thread depends on the width of a warp, unless the block's warps are put together
afterwards. So the text is matched, step by step, with the ways in which that is done.
"""

import re
from collections.abc import Iterable, Iterator

from warpsmith.hip.functions import Function, functions_of
from warpsmith.hip.source_words import Refusal, SourceWords

_TYPE = r"(?:(?:const|unsigned|int|auto|float|double|size_t|uint32_t|int32_t|T|long) )+"
_BARRIER = r"__syncthreads \( \) ; "
_KINDS = (
    ("@TID", r"threadIdx \. x"),
    ("@LANE", r"@TID % warpSize|@TID & \( warpSize - 1 \)"),
    ("@WARP", r"@TID / warpSize"),
    ("@COUNT", r"blockDim \. x / warpSize|\( blockDim \. x \+ warpSize - 1 \) / warpSize"),
)
_SHUFFLE_AGAIN = r"__shfl_(?P<kind{n}>down|xor) \( (?P=v) , (?P=o) (?:, warpSize )?\) "
_STEP = (
    r"(?P<v>\w+) (?:(?P<op0>[+*|&^]) = S0|= (?P=v) (?P<op1>[+*|&^]) S1"
    r"|= (?P<op2>fmaxf|fminf|fmax|fmin|max|min) \( (?P=v) , S2\) "
    r"|= (?P<op3>fmaxf|fminf|fmax|fmin|max|min) \( S3, (?P=v) \) )"
)
for _n in range(4):
    _STEP = _STEP.replace(f"S{_n}", _SHUFFLE_AGAIN.replace("{n}", str(_n)))
_LOOP = re.compile(
    r"for \( (?:unsigned int|unsigned|int) (?P<o>\w+) = warpSize (?:/ 2|> > 1) ; (?P=o) (?:> 0 )?; "
    r"(?P=o) (?:/ = 2|> >= 1) \) (?P<open>\{ )?" + _STEP + r"; (?(open)\} )"
)
_COMBINED = r"@C_(?P<{0}>down|xor)_(?P<op>\w+) \( (?P<{1}>\w+) \) ; "
_STORED = (
    _COMBINED.format("first", "v")
    + rf"(?:{_BARRIER})?if \( @LANE == 0 \) (?P<o1>\{{ )?(?P<s>\w+) \[ @WARP \] = (?P=v) ; "
    + rf"(?(o1)\}} ){_BARRIER}"
)
_FIRST = r"if \( (?:@WARP == 0|@TID < warpSize) \) "
_BY_WARP = re.compile(
    _STORED
    + rf"(?P<only>{_FIRST}\{{ )?(?:{_TYPE})?(?P<t>\w+) = (?P<o2>\( )?(?P<i>@LANE|@TID) < @COUNT (?(o2)\) )"
    + r"\? (?P=s) \[ (?:(?P=i)|@LANE) \] : (?P<rest>[^;@?\[\]]+) ; "
    + rf"(?P<then>{_FIRST})?@C_(?P<second>down|xor)_(?P=op) \( (?P=t) \) ; "
)
_BY_THREAD = re.compile(
    _STORED
    + rf"(?:{_TYPE})?(?P<t>\w+) = (?P=s) \[ 0 \] ; "
    + r"for \( (?:unsigned int|unsigned|int) (?P<w>\w+) = 1 ; (?P=w) < @COUNT ; "
    + r"(?:\+ \+ (?P=w)|(?P=w) \+ \+) \) (?P<o2>\{ )?(?P=t) (?:(?P<o3>[+*|&^]) = (?P=s) \[ (?P=w) \] "
    + r"|= (?P<o4>fmaxf|fminf|fmax|fmin|max|min) \( (?P=t) , (?P=s) \[ (?P=w) \] \) ); (?(o2)\} )"
)
_ADDED = re.compile(
    _COMBINED.format("first", "v")
    + r"if \( @LANE == 0 \) (?P<o1>\{ )?atomic(?P<by>Add|Max|Min) \( [^;@]*?, (?P=v) \) ; (?(o1)\} )"
)
_BROADCAST = re.compile(
    r"@ZERO \( (?P<t>\w+) \) ; (?:__syncthreads \( \) ; )?if \( @TID == 0 \) "
    r"(?P<o>\{ )?(?P<s>\w+) \[ 0 \] = (?P=t) ; "
    rf"(?(o)\}} ){_BARRIER}(?:{_TYPE})?(?P<u>\w+) = (?P=s) \[ 0 \] ; "
)
_WORDS_OF = {"+": "add", "*": "mul", "|": "or", "&": "and", "^": "xor"}
_NUMBER = r"(?:FLT_MAX|HIP_INF_F|HIP_INF|INFINITY|DBL_MAX|1e3[0-8]f?)"
_NEUTRAL = {
    "add": r"0(?:\.0*)?[fF]?",
    "or": "0u?",
    "xor": "0u?",
    "mul": r"1(?:\.0*)?[fF]?",
    "max": rf"- {_NUMBER}|INT_MIN",
    "min": rf"{_NUMBER}|INT_MAX",
}
"""What changes nothing in a reduction: how many warps have nothing to add depends on their width."""
_GUARDED = re.compile(r"if \( @TID == 0 \) (?:\{ [^{}]*\} |[^;{}]*; )")
_REST = re.compile(r"warpSize|@LANE|@WARP|@COUNT|@C_|__shfl\w*")
_OUTSIDE = (
    "what it computes with warps of 64 is not known: outside of the known forms of reductions by warps "
    "(loops of shuffles from warpSize / 2 down, one value for each warp in shared memory, then one for the "
    "block)"
)


def whole_warp_refusals(sources: Iterable[SourceWords]) -> Iterator[Refusal]:
    """Everything in HIP sources that counts on the width of a warp beside the known forms."""
    sources = list(sources)
    functions = [f for words in sources for f in functions_of(words)]
    held = sum(len(re.findall(r"\b(?:warpSize|__shfl\w*)\b", f.body)) for f in functions)
    every = [t for words in sources for t in words.items if re.fullmatch(r"warpSize|__shfl\w*", t.text)]
    if held != len(every):
        words = next(w for w in sources if any(t in every for t in w.items))
        token = next(t for t in words.items if t in every)
        yield words.refusal(token, token.text, "it stands outside of a function; write it inside one")
        return
    results: dict[str, str] = {}
    """What functions give, by name: `C_down`, `C_xor` of a warp; `ALL`, `ZERO` of a block."""
    left = {f.name: f for f in functions}
    if len(left) != len(functions):
        yield functions[0].words.refusal(0, "warpSize", "functions of one name cannot be told apart here")
        return
    for _ in range(len(left)):
        known = len(results)
        for name, function in list(left.items()):
            given = _result(function, results)
            if given:
                results[name] = given
                del left[name]
        if len(results) == known:
            break
    for function in left.values():
        problem = _problem(function, results)
        if problem:
            yield function.words.refusal(function.start, function.name, problem)


def _with_kinds(body: str) -> str:
    """The body with the numbers of threads and warps by kind, under whatever name it has them."""
    kept = r"(?:(?:const|unsigned|int|auto|size_t|uint32_t) )+"
    for kind, pattern in _KINDS:
        spelt = rf"(?:\( (?:{pattern}) \)|(?:{pattern}))"
        for name in set(re.findall(rf"{kept}(\w+) = {spelt} ; ", body)):
            changed = rf"\b{name} (?:= |[-+*/%&|^] = |\+ \+|- -)|(?:\+ \+|- -|& |\. ){name}\b"
            rest, count = re.subn(rf"{kept}{name} = {spelt} ; ", "", body)
            if count != 1 or re.search(changed, rest):
                continue  # such a name is any other number
            body = re.sub(rf"(?<![\w@]){name}(?!\w)", kind, rest)
        body = re.sub(rf"(?<![\w@]){spelt}(?!\w)", kind, body)
    return body


def _operation(sign: str) -> str:
    """A reduction by its name: `add`, `max`."""
    return _WORDS_OF.get(sign) or sign.removeprefix("f").removesuffix("f")


def _combined(match: re.Match[str]) -> str:
    n = next(n for n in range(4) if match[f"kind{n}"])
    return f"@C_{match[f'kind{n}']}_{_operation(match[f'op{n}'])} ( {match['v']} ) ; "


def _by_thread(match: re.Match[str]) -> str:
    if _operation(match["o3"] or match["o4"]) != match["op"]:
        return match.group()
    return f"{_spent(match)}@ALL ( {match['t']} ) ; "


def _added(match: re.Match[str]) -> str:
    return f"@SPENT ( {match['v']} ) ; " if match["by"].lower() == match["op"] else match.group()


def _broadcast(match: re.Match[str]) -> str:
    spent = "" if match["t"] == match["u"] else f"@SPENT ( {match['t']} ) ; "
    return f"@ALL ( {match['u']} ) ; {spent}@SPENT ( {match['s']} ) ; "


def _spent(match: re.Match[str]) -> str:
    """Marks for what differs by the width after a reduction: values of single warps."""
    own = "" if match["t"] == match["v"] else f"@SPENT ( {match['v']} ) ; "
    return f"{own}@SPENT ( {match['s']} ) ; "


def _marked(function: Function, results: dict[str, str]) -> str:
    """The body with reductions as marks."""
    body = _LOOP.sub(_combined, _with_kinds(function.body))
    for name, given in results.items():
        call = rf"(?P<type>{_TYPE})?(?P<v>\w+) = {name} \( (?P<arguments>[^;]*?)\) ; "

        def marked(match: re.Match[str], given: str = given) -> str:
            value, arguments = match["v"], match["arguments"].strip()
            if not given.startswith("C_"):
                return f"@{given} ( {value} ) ; "
            before = "" if arguments == value else f"{match['type'] or ''}{value} = {arguments} ; "
            return f"{before}@{given} ( {value} ) ; "

        body = re.sub(call, marked, body)
    body = _BY_THREAD.sub(_by_thread, body)
    at = 0
    while match := _BY_WARP.search(body, at):
        at = match.start() + 1
        if re.fullmatch(_NEUTRAL.get(match["op"], "(?!)"), match["rest"]):
            body = _by_warp(body, match)
    return _ADDED.sub(_added, _BROADCAST.sub(_broadcast, body))


def _by_warp(body: str, match: re.Match[str]) -> str:
    is_all = match["second"] == "xor" and match["i"] == "@LANE" and not match["only"] and not match["then"]
    after = body[match.end() :]
    mark = f"{_spent(match)}@{'ALL' if is_all else 'ZERO'} ( {match['t']} ) ; "
    if not match["only"]:
        return body[: match.start()] + mark + after
    depth, end = 1, 0
    for found in re.finditer(r"[{}]", after):
        depth += 1 if found.group() == "{" else -1
        end = found.end()
        if depth == 0:
            break
    # The first thread of the first warp is the first of the block.
    inside = after[: end - 1].replace("@LANE == 0", "@TID == 0")
    return body[: match.start()] + mark + inside + after[end:].lstrip(" ")


def _result(function: Function, results: dict[str, str]) -> str:
    """What a function gives its caller; empty if it is no known form."""
    body = _marked(function, results)
    whole = re.fullmatch(r"@(C_\w+) \( (\w+) \) ; return \2 ; ", body)
    if whole and re.search(rf"\b{whole[2]} (?:,|$)", function.parameters):
        return whole[1]
    marks = re.findall(r"@(ALL|ZERO) \( (\w+) \) ; ", body)
    if len(marks) != 1:
        return ""
    end = f"return {marks[0][1]} ; "
    is_form = body.endswith(end) and not _problem_of(body.removesuffix(end))
    return str(marks[0][0]) if is_form else ""


def _problem(function: Function, results: dict[str, str]) -> str:
    body = _marked(function, results)
    calls = [name for name in results if re.search(rf"\b{name} \(", body)]
    if calls:
        return f"{calls[0]} is called in another way than `value = {calls[0]}(value);`"
    return _problem_of(body)


def _problem_of(body: str) -> str:
    """Why a marked body is not known to be right on every width; empty if it is."""
    if _REST.search(body):
        return _OUTSIDE
    marks = list(re.finditer(r"@(ALL|ZERO|SPENT) \( (\w+) \) ; ", body))
    if not marks:
        return ""
    if "return ;" in body[: marks[-1].end()]:
        return "threads may leave before an exchange over the whole warp"
    for mark in marks:
        before = body[: mark.start()]
        if before.count("{") != before.count("}") or re.search(r"(?:\)|\belse|\bdo) $", before):
            return "an exchange over the whole warp stands under a condition or in a loop"
        if mark[1] == "ALL":
            continue
        after = re.sub(r"@\w+ \( \w+ \) ; ", "", body[mark.end() :])
        after = after if mark[1] == "SPENT" else _GUARDED.sub("", after)
        again = re.search(rf"\b{mark[2]} = (?!=)[^;]*; ", after)
        until = after[: again.start()] if again else after
        if again and re.search(rf"\b{mark[2]}\b", again.group().split("=", 1)[1]):
            until = after
        if re.search(rf"\b{mark[2]}\b", until):
            users = "it is used again" if mark[1] == "SPENT" else "threads other than the first use it"
            return f"{mark[2]} depends on the width of a warp, and {users}"
    return ""
