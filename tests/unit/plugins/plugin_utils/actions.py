"""Action plugins as Ansible makes them, without a run of Ansible around them."""

import types
import typing as t


def make_action(
    module: t.Any,
    transport: str = "local",
    become: bool = False,
    basedir: str = "/plays",
    **fields: t.Any,
) -> t.Any:
    """Return the action plugin in a module, for a task with these fields."""
    name = module.__name__.rpartition(".")[2]
    task = types.SimpleNamespace(
        **{
            "action": f"osops.placement.{name}",
            "args": {},
            "async_val": 0,
            "check_mode": False,
            "diff": False,
            "environment": [],
            "no_log": False,
            "_role": None,
            **fields,
        }
    )
    shell = types.SimpleNamespace(tmpdir=None)
    return module.ActionModule(
        task=task,
        connection=types.SimpleNamespace(transport=transport, _shell=shell, has_native_async=False),
        play_context=types.SimpleNamespace(check_mode=task.check_mode, become=become),
        loader=types.SimpleNamespace(get_basedir=lambda: basedir),
        templar=types.SimpleNamespace(template=lambda value: value),
        shared_loader_obj=None,
    )
