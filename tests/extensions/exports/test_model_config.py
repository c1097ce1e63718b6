"""The layer of a model by its configuration: public families by the names of their fields, and refusals."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from warpsmith.cli.app import app
from warpsmith.errors import InvalidInput
from warpsmith.extensions.exports.tables.model_config import SIZES, model_config, model_tables, moe_layer

MODELS = json.loads((Path(__file__).parents[2] / "data" / "model_configs.json").read_text())
MIXTRAL: dict[str, Any] = MODELS["mixtral"]["config"]
FP8: dict[str, Any] = MODELS["qwen3-moe, fp8"]["config"]


@pytest.mark.parametrize("name", MODELS)
def test_the_layer_of_a_family_is_found(name: str) -> None:
    held = MODELS[name]
    config = model_config(json.dumps(held["config"]))
    assert config is not None
    layer = moe_layer(config, held.get("tp", 1), held.get("ep", 1), "config.json")
    vllm, sglang = model_tables(layer, "NVIDIA H200")
    assert (vllm.hidden, sglang.chosen) == (layer.hidden, layer.chosen)
    assert (sglang.place.layer, layer.hidden, layer.chosen) == (held["layer"], held["hidden"], held["chosen"])
    first, dot, rest = held["layer"].partition(",dtype")
    assert sglang.file == f"{first},device_name=NVIDIA_H200{dot}{rest}.json"
    without = sglang.file.replace("[128, 128]", "[128,128]").replace(",per_channel_quant=True", "")
    assert vllm.file == without


def test_names_of_devices_are_those_of_the_engine() -> None:
    layer = moe_layer(MIXTRAL, 1, 1, "config.json")
    files = [table.file for table in model_tables(layer, "NVIDIA H200 NVL")]
    assert files == [f"E=8,N=14336,device_name=NVIDIA_H200{nvl}.json" for nvl in ("", "_NVL")]
    assert [t.place.device for t in model_tables(layer, "")] == ["", ""]
    assert model_tables(layer, "")[0].file == "E=8,N=14336,device_name=*.json"


def quantised(**fields: object) -> dict[str, Any]:
    return MIXTRAL | {"quantization_config": fields}


INT4 = {"g": {"weights": {"num_bits": 4, "type": "int"}, "input_activations": None}}
DENSE = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336}
OSS = {"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_local_experts": 128}
OSS |= {"num_experts_per_tok": 4, "quantization_config": {"quant_method": "mxfp4"}}


@pytest.mark.parametrize(
    ("config", "tp", "ep", "message"),
    [
        (OSS, 1, 1, "config.json: weights of mxfp4 run another kernel"),
        (quantised(quant_method="awq"), 1, 1, "config.json: weights of awq run another kernel"),
        (quantised(quant_method="compressed-tensors", config_groups=INT4), 1, 1, "weights of compressed"),
        (quantised(quant_method="modelopt", quant_algo="NVFP4"), 1, 1, "weights of modelopt"),
        (DENSE, 1, 1, "config.json: the model has no experts"),
        (DENSE | {"num_local_experts": True}, 1, 1, "the model has no experts"),
        (MIXTRAL | {"hidden_size": None}, 1, 1, "config.json: the configuration has no hidden size; add it"),
        (MIXTRAL, 3, 1, "--tp: 3 slices do not divide the intermediate size 14336"),
        (MIXTRAL, 4, 3, "--ep: 3 does not divide both --tp 4 and the 8 experts"),
        (FP8, 8, 1, "--tp: a slice of 192 is no multiple of the 128 rows that share a scale"),
    ],
)
def test_what_has_no_such_table_is_refused_with_the_reason(
    config: dict[str, Any], tp: int, ep: int, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        moe_layer(config, tp, ep, "config.json")
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["no file", "{", "[1]", '{"E": 8}', "{" * 9999, '{"a":' * 99999])
def test_other_texts_are_no_configuration(text: str) -> None:
    assert model_config(text) is None


def odd_configurations() -> Iterator[dict[str, Any]]:
    odd: list[object] = [None, [], {}, "8", 8.5, -1, [None], {"a": 1}, "x" * 99]
    for field in [*FP8, "text_config"]:
        for value in odd:
            yield copy.deepcopy(FP8) | {field: value}
            yield quantised(quant_method="compressed-tensors", config_groups=value)
            yield quantised(quant_method="compressed-tensors", config_groups={"g": {field: value}})
            for part in ("weights", "input_activations"):
                yield quantised(quant_method="compressed-tensors", config_groups={"g": {part: value}})


def test_odd_values_are_refused_and_never_crash() -> None:
    for config in odd_configurations():
        try:
            moe_layer(config, 1, 1, "config.json")
        except InvalidInput as exc:
            assert exc.field


def test_the_command_takes_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FP8))
    words = ["tables", str(path), "--tp", "4", "--device", "NVIDIA H100"]
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    assert "E=128,N=384,dtype=fp8_w8a8,block_shape=[128, 128]" in shown.output
    assert "2 tables are asked for; the engine asks for sizes 1, 2, 4, 8" in shown.output
    plain = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert [row["engine"] for row in plain["missing"]] == ["vLLM", "SGLang"]
    assert plain["sizes"] == list(SIZES)
    path.write_text(json.dumps(OSS))
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0 and isinstance(refused.exception, InvalidInput | SystemExit)
