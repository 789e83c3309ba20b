"""From a GGUF file to an OpenVINO IR through openvino-genai. Runs in the worker process."""

from __future__ import annotations

import contextlib
from pathlib import Path

from fleetapp.errors import CorruptModel, StorageError
from fleetapp.models.progress import Progress, ProgressFn

MODEL = "openvino_model"
TOKENIZERS = ("openvino_tokenizer", "openvino_detokenizer")


def gguf_to_ir(source: Path, target: Path, progress: ProgressFn) -> None:
    """Convert a GGUF file that lies in ``target``; the IR appears beside it.

    openvino-genai writes what it made next to the file it read, which is why the caller links the
    file into the target folder first.

    Raises:
        CorruptModel: the converter refuses the file; says why in its words.
        StorageError: the folder cannot be written, or the disk is full.
    """
    import openvino_genai  # noqa: PLC0415 - only the worker may load native code

    progress(Progress("converting"))
    try:
        # By its bare name: on Windows the converter opens paths in the old code page, in which a
        # home folder may have no name (trap T25). Only the worker, a process of its own, gets here.
        with contextlib.chdir(source.parent):
            pipeline = openvino_genai.LLMPipeline(
                f"./{source.name}", "CPU", enable_save_ov_model=True, INFERENCE_NUM_THREADS=2
            )
    except (RuntimeError, IndexError, ValueError, MemoryError) as e:
        if "iostream" in str(e):  # what its writer says when it cannot write
            raise StorageError(
                f"{target} cannot be written: {e}", remedy="Check the disk and try again."
            ) from e
        said = [line.strip() for line in str(e).splitlines() if line.strip()]
        raise CorruptModel(
            f"{source.name} cannot be converted: {said[-1] if said else 'no reason given'}"
        ) from e
    del pipeline
    for stem in (MODEL, *TOKENIZERS):
        for suffix in (".xml", ".bin"):
            if not (target / f"{stem}{suffix}").is_file():
                raise CorruptModel(f"{source.name} was converted, but {stem}{suffix} is missing.")
