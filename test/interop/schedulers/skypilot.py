"""Compares the tasks of a YAML file with the schemas of SkyPilot, as its server does.

    python3 skypilot.py FOLDER FILE

FOLDER is a checkout of SkyPilot. Modules that it imports and that are not installed, or not in FOLDER, are replaced by
ones without content: the schemas of tasks and resources use constants only.
"""
import importlib.abc
import importlib.machinery
import os
import sys
import types
from unittest import mock

import jsonschema
import yaml

folder, path = sys.argv[1:]


class Missing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that no other finder has found."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("sky", "packaging"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: mock.MagicMock()
        return module

    def exec_module(self, module):
        pass


sky = types.ModuleType("sky")
sky.__path__, sky.__version__ = [os.path.join(folder, "sky")], "1.0.0"
sys.modules["sky"] = sky
sys.modules["sky.skylet.autostop_lib"] = types.SimpleNamespace(
    AutostopWaitFor=types.SimpleNamespace(supported_modes=lambda: []))
sys.meta_path.append(Missing())
from sky.utils import schemas  # noqa: E402: after the stand-ins

schemas._allow_additional_properties = lambda: False
documents = list(yaml.safe_load_all(open(path)))
assert len(documents) > 1 and list(documents[0]) == ["name"], "the first document names the pipeline"
for task in documents[1:]:
    jsonschema.validate(task, schemas.get_task_schema())
    jsonschema.validate(task["resources"], schemas.get_resources_schema())
