"""The tutorial runs from its first cell to its last, and ends in three plots."""

import pathlib
import sys

import nbformat
from nbclient import NotebookClient

from conftest import ROOT


def test_the_tour(tmp_path: pathlib.Path) -> None:
    notebook = nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept: they are made here"
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}})
    # The kernel is this interpreter, wherever others are installed.
    client.create_kernel_manager()
    assert client.km is not None
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    plots = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(plots) == 3
    assert any("role='img'" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert not [output for output in outputs if output.get("name") == "stderr"], outputs
