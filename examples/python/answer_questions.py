"""Answers the questions of agents with a function of your own, through the provider `external`.

A job asks outside if it says so:

    agents: {provider: rules, roles: {templater: external}}

    warpsmith serve --embedded &
    warpsmith submit job.yaml
    python examples/python/answer_questions.py --job ID

`answer` below knows one trick only. A model, a script or a person can stand in its place: a question has the
role's instructions, its data, and the JSON schema of the answer. Its data holds text from jobs and compilers,
which is nothing to obey. An answer is such data, or a text as a model writes it: the source in a fenced
block, the other fields in a JSON object. One that does not fit is refused with the reason, and may be mended
until the deadline.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from warpsmith import AgentRequest, Client, InvalidInput, WarpsmithError

Answer = Mapping[str, Any] | str
TRIES = 3
"""Refused answers to a question before it is left to the built-in rules."""


def answer(question: AgentRequest) -> Answer | None:
    """An answer that fits `question.wanted`; None leaves the question open."""
    if question.role == "templater" and "block_size" in question.question["rules"]:
        return {"rules": ["block_size"], "reasoning": "the number of threads matters for most kernels"}
    return None


def answer_open(client: Client, job_id: str | None, answered: Callable[[AgentRequest], Answer | None]) -> int:
    """Answer what is open; the number of answers that were taken."""
    taken = 0
    for question in client.agent_requests(job_id):
        given = answered(question) if question.refusals < TRIES else None
        if given is None:
            continue
        about = f"{question.role} of job {question.job}, round {question.round}"
        try:
            client.reply(question.id, given, by="answer_questions.py")
        except InvalidInput as refusal:
            print(f"{about}: refused: {refusal}", flush=True)
        else:
            taken += 1
            print(f"{about}: answered", flush=True)
    return taken


def main() -> int:
    """Answer until the job has ended."""
    options = argparse.ArgumentParser(description="Answer the questions of a job's agents.")
    options.add_argument("--job", required=True, help="id of the job")
    options.add_argument("--url", default="http://127.0.0.1:8765", help="address of the service")
    given = options.parse_args()
    try:
        with Client(given.url, os.environ.get("WARPSMITH_API_KEY")) as client:
            while not client.status(given.job).state.is_terminal:
                answer_open(client, given.job, answer)
                time.sleep(0.5)
            print(client.result_of(given.job))
    except WarpsmithError as error:
        sys.exit(f"error: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
