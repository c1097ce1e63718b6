"""Settings, from `WARPSMITH_*` environment variables and an optional `.env` file.

The same code runs embedded (SQLite, file-system broker) and full (Postgres, Redis); only these values differ.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self, cast, get_args
from urllib.parse import quote

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from warpsmith.domain.jobs.job import AgentRole, ProviderName
from warpsmith.processes.child_deadlines import REFERENCE_S, START_S, WATCHED_RATIO
from warpsmith.system.addresses import Allowed
from warpsmith.system.secret_files import SECRET_FILES, require_chosen, with_secrets

UNSERVED_S = 600.0
STALL_MARGIN_S = 60.0


class Settings(BaseSettings):
    """All settings of an operator."""

    model_config = SettingsConfigDict(env_prefix="WARPSMITH_", env_file=".env", extra="ignore")

    data_dir: Path = Path(".warpsmith")
    """Folder of the embedded mode's database, broker files and logs."""
    database_url: str | None = None
    """SQLAlchemy URL (`postgresql+psycopg://...`). Default: SQLite under `data_dir`."""
    database_url_file: Path | None = None
    """File that holds that URL. Every setting that ends in `_file` works like this."""
    database_password_file: Path | None = None
    """File with the password that the URL lacks."""
    broker_url: str | None = None
    """Celery broker (`redis://...`). Default: the file-system transport under `data_dir`."""
    broker_url_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8765
    api_key: SecretStr | None = None
    """API key that the command line presents to a service; made with `warpsmith keys create`."""
    api_key_file: Path | None = None
    key_requests_per_s: float = Field(default=50, gt=0)
    """Requests per second per API key, at each API process. This and the next four apply if a key has no
    limit of its own."""
    key_submits_per_minute: int = Field(default=60, ge=1)
    key_open_jobs: int = Field(default=200, ge=1)
    key_device_s_per_day: float = Field(default=0, ge=0)
    """Seconds of budget that a key's jobs may request in 24 hours; 0: no limit."""
    key_usd_per_day: float = Field(default=0, ge=0)
    """USD of model budget that a key's jobs may request in 24 hours; 0: no limit."""
    max_open_jobs: int = Field(default=5000, ge=1)
    """Limit on open jobs of all tenants; further jobs are refused with 503."""
    job_memory_mb: int = Field(default=0, ge=0)
    """Limit on the memory of a job (MiB), both on its device and on a worker's machine; 0: the memory
    present."""
    include_dirs: str = ""
    """Include folders that jobs may name: `flashinfer=/opt/flashinfer/include:other=/path`."""
    compile_workers: int = Field(default=0, ge=0)
    """Concurrent compile children; 0: one per core."""
    compile_timeout_s: float = Field(default=60, gt=0)
    allow_root: bool = False
    """True if a worker for others may run as root. An embedded one on loopback may, and warns."""
    artifact_dir: Path | None = None
    """Folder of compiled kernels, which workers may share. Default: under `data_dir`."""
    run_timeout_s: float = Field(default=20, gt=0)
    """Deadline of one request to a device child."""
    stall_s: float = Field(default=0, ge=0)
    """Seconds without any movement after which an attempt at a task is ended, with its children, and tried
    again; 0: the sum of the deadlines of a start, a launch under a sanitizer, a reference, a compilation and
    a call of a model, and a minute."""
    ncu: bool = False
    """If true, the kernel of every CUDA job is profiled with Nsight Compute, if it is installed and
    permitted."""
    slice_s: float = Field(default=60, gt=0)
    """Seconds after which a search lets others use its device; each turn begins with new inputs there."""
    lease_s: float = Field(default=10, gt=0)
    renew_s: float = Field(default=3, gt=0)
    sweep_s: float = Field(default=2, gt=0)
    unserved_s: float = Field(default=UNSERVED_S, gt=0)
    """Seconds after which a job that has not begun fails if no worker can serve it. In the embedded mode it
    fails at once, since its only worker will not gain capabilities."""
    reuse_trials_s: float = Field(default=30 * 86400, ge=0)
    """Seconds for which a tenant's trials of the same kernel on the same device class are reused; 0:
    never."""
    remembers: bool = True
    """True if searches and agents start from lessons of a tenant's earlier jobs on kernels like it."""
    shares_lessons: bool = False
    """True if they start from every tenant's earlier jobs. Their kernels and templates are then shown to each
    other's agents."""
    max_attempts: int = Field(default=3, ge=1)
    webhook_private: str = ""
    """Networks and names of hosts beside the public internet to which webhooks may be sent:
    `10.1.0.0/16,hooks.internal`."""
    log_format: Literal["text", "json"] = "text"
    """Format of log lines; `json` is for log collectors."""
    replay_dir: Path | None = None
    """Folder of recorded timings. If unset, jobs for the back end `replay` are refused."""
    replay_trial_s: float = Field(default=0, ge=0)
    """Seconds that a trial of the replay back end takes."""
    agent_provider: ProviderName = "rules"
    """Provider of agent steps for jobs that do not choose one."""
    agent_providers: str = ""
    """Providers that differ by role: `templater=openai,profiler=rules`."""
    agent_external_timeout_s: float = Field(default=600, gt=0)
    """Seconds after which the rules answer an open request that nobody has answered."""
    openai_base_url: str | None = None
    """URL of any server with OpenAI's chat completions; None: no model is called."""
    openai_api_key: SecretStr | None = None
    openai_api_key_file: Path | None = None
    openai_model: str = ""
    openai_models: str = ""
    """Other models for single roles: `templater=large,planner=small`."""
    openai_prices: str = ""
    """USD per million tokens of prompt and of reply, by model; if the server keeps prompts, also of what it
    had kept and of what it keeps from now on: `large=2.5/10/0.25/3.1,local=0/0`."""
    openai_timeout_s: float = Field(default=120, gt=0)
    """Deadline of one call of a model."""
    openai_retries: int = Field(default=3, ge=0, le=10)
    """Limit on the calls after one that the server refused or lost."""
    openai_repairs: int = Field(default=2, ge=0, le=10)
    """Limit on the calls after one with an unusable reply; the model is told the reason."""
    openai_max_output_tokens: int = Field(default=8192, ge=256)
    """Limit on the tokens of one reply."""

    @property
    def api_key_text(self) -> str | None:
        """The API key that a client presents; None without one."""
        return None if self.api_key is None else self.api_key.get_secret_value()

    @property
    def embedded(self) -> bool:
        """True where neither a database nor a broker is configured."""
        return self.database_url is None and self.broker_url is None

    @property
    def unserved_limit_s(self) -> float:
        """Seconds for which a job may have no worker that can serve it; 0: until a worker reports so."""
        return 0.0 if self.embedded else self.unserved_s

    @property
    def stall_limit_s(self) -> float:
        """Seconds without any movement that no honest step takes."""
        steps = START_S + WATCHED_RATIO * self.run_timeout_s + REFERENCE_S + self.compile_timeout_s
        return self.stall_s or steps + self.openai_timeout_s + STALL_MARGIN_S

    @property
    def sqlalchemy_url(self) -> str:
        """The database that holds everything."""
        # SQLAlchemy, which a client lacks, writes a path into a URL in the same way.
        return self.database_url or f"sqlite:///{quote(str(self.data_dir.absolute() / 'warpsmith.db'))}"

    @property
    def job_memory_bytes(self) -> int:
        """`job_memory_mb` in bytes."""
        return self.job_memory_mb << 20

    def provider_of(self, role: AgentRole) -> ProviderName:
        """Provider of a role for jobs that do not choose one."""
        return cast(ProviderName, _by_role(self.agent_providers).get(role, self.agent_provider))

    def model_of(self, role: str) -> str:
        """The model that answers for a role."""
        return _by_role(self.openai_models).get(role, self.openai_model)

    def price_of(self, model: str) -> tuple[float, float, float, float] | None:
        """USD per million tokens of prompt, reply, kept prompt and prompt to keep; None: there are none.

        What is left out costs as the prompt.
        """
        for item in self.openai_prices.split(","):
            name, separator, price = item.rpartition("=")
            if separator and name.strip() == model:
                given = [float(part) for part in price.split("/")]
                prompt, reply, cached, written = [*given, *[given[0]] * (4 - len(given))]
                return prompt, reply, cached, written
        return None

    @field_validator(
        "openai_base_url", "openai_api_key", "api_key", "artifact_dir", *SECRET_FILES, mode="before"
    )
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return None if value == "" else value

    @model_validator(mode="before")
    @classmethod
    def _read_secrets(cls, data: dict[str, object]) -> dict[str, object]:
        return with_secrets(data)

    @model_validator(mode="after")
    def _chosen(self) -> Self:
        require_chosen(self.database_url, self.broker_url, self.api_key, self.openai_api_key)
        return self

    @field_validator("webhook_private")
    @classmethod
    def _webhook_hosts(cls, value: str) -> str:
        Allowed.of(value)
        return value

    @field_validator("agent_providers")
    @classmethod
    def _providers(cls, value: str) -> str:
        roles, names = get_args(AgentRole), get_args(ProviderName)
        for item in filter(str.strip, value.split(",")):
            role, _, name = item.partition("=")
            if role.strip() not in roles or name.strip() not in names:
                raise ValueError(
                    f"{item.strip()!r} is not of the form role=provider, with a role of "
                    f"{', '.join(roles)} and a provider of {', '.join(names)}"
                )
        return value

    @field_validator("openai_prices")
    @classmethod
    def _prices(cls, value: str) -> str:
        for item in filter(None, value.split(",")):
            if not re.fullmatch(r"\s*\S+=\d+(\.\d+)?(/\d+(\.\d+)?){0,3}\s*", item):
                form = "model=prompt/reply/cached/written, of which the last two may be left out"
                raise ValueError(f"{item!r} is not of the form {form}, such as large=2.5/10")
        return value

    def permitted_includes(self) -> dict[str, Path]:
        """Include folders by the names under which jobs may ask for them."""
        pairs = (item.split("=", 1) for item in self.include_dirs.split(":") if "=" in item)
        return {name: Path(path) for name, path in pairs}


def _by_role(value: str) -> dict[str, str]:
    pairs = (item.split("=", 1) for item in value.split(",") if "=" in item)
    return {role.strip(): name.strip() for role, name in pairs}


@lru_cache
def settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()
