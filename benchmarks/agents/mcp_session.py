"""One tool call over MCP, kept in a transcript: how an agent that has nothing but the tools works.

    python -m benchmarks.agents.mcp_session --url URL --out FILE TOOL [ARGUMENTS.json]

An agent that cannot speak the protocol itself calls this for each tool. It prints what the tool says, or for
`tools` the list of tools with their schemas. The transcript has a line for each call: seconds since the
first, tool, arguments, whether it failed, and what it said.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

LONG = 3000
"""Characters of a text above which the transcript has its beginning only."""


async def said(url: str, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
    """Whether a call failed, and what the tool said."""
    key = os.environ.get("WARPSMITH_API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=600) as http,
        Client(streamable_http_client(f"{url.rstrip('/')}/mcp", http_client=http)) as client,
    ):
        if tool == "tools":
            tools = (await client.list_tools()).tools
            about = [{"name": t.name, "says": t.description, "takes": t.input_schema} for t in tools]
            return False, {"instructions": client.instructions, "tools": about}
        result = await client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            return result.is_error, "\n".join(getattr(c, "text", "") for c in result.content)
        found = result.structured_content
        return False, found["result"] if set(found) == {"result"} else found


def shortened(value: Any) -> Any:
    """The value with its long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= LONG else f"{value[:LONG]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {k: shortened(v) for k, v in value.items()}
    return [shortened(v) for v in value] if isinstance(value, list) else value


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8765")
    parser.add_argument("--out", type=Path, required=True, help="transcript that gets a line more")
    parser.add_argument("tool")
    parser.add_argument("arguments", type=Path, nargs="?", help="file with the tool's arguments, as JSON")
    options = parser.parse_args()
    arguments = json.loads(options.arguments.read_text()) if options.arguments else {}
    failed, answer = asyncio.run(said(options.url, options.tool, arguments))
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    began = json.loads(lines[0])["began"] if lines else time.time()
    row = {
        "began": began,
        "at_s": round(time.time() - began, 1),
        "tool": options.tool,
        "arguments": shortened(arguments),
        "failed": failed,
        "said": "" if options.tool == "tools" else shortened(answer),
    }
    with options.out.open("a") as out:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(answer if isinstance(answer, str) else json.dumps(answer, indent=1, ensure_ascii=False))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
